"""Word alignments learnt by counting: IBM model 1, then a hidden Markov model, in NumPy alone."""
