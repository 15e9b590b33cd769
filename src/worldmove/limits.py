"""How much of anything an engine may have, each bound once: whoever checks, sends, shows or records goes by these."""

MAX_LIST = 64
"""Key changes in one block's closed list. What is more waits for the next block."""
