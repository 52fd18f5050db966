"""The ladder from one fixed vector to nothing but attention, climbed on anybody's data."""
