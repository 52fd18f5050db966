"""From a user's files to training batches: reading, checking, storing, batching."""
