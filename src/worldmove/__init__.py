"""WorldMove: exact-state serving for interactive world models."""

__version__ = "0.1.0"
