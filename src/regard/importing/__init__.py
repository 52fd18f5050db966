"""Models of other programs as model files of ours. No torch and no other program is needed."""
