"""Neural machine translation that shows where it looks."""

__version__ = "0.1.0"
