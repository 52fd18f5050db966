"""A file of lines translated or aligned in shards: by one machine, by many, today and tomorrow."""
