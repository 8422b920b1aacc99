"""The collections of a server: read, written, counted, and found again after a restart."""
