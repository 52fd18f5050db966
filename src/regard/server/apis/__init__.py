"""The APIs of the server, one module each."""
