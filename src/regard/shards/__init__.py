"""A file of lines translated in shards: by one machine, by many, today and tomorrow."""
