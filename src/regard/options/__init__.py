"""Every option: its name, type, default, help and check."""
