"""A module with a counter, as a helper of an engine may have one."""

blocks = 0
