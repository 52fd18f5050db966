"""Whether the promises hold for one model on one machine, and whether another program translates alike."""
