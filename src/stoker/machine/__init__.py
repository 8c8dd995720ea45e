"""Facts about the host."""
