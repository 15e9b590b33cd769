"""A module that ends whoever imports it."""

raise SystemExit("this module ends whoever imports it")
