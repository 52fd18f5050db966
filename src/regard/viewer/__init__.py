"""The page that shows traces, in one file."""
