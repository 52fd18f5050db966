"""Documents translated in place: what is text is replaced, and everything else stays as it was."""
