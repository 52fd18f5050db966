"""Training: from a prepared corpus to a model, and the record of how it went."""
