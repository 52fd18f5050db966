"""From scores of the next word to whole translations; it knows engines by their contract only."""
