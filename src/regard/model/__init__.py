"""Models: what is learned, and what it is learned with."""
