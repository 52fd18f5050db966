"""How good translations are: scores with intervals, by length, frequency and flags; comparisons; reports."""
