"""Keys: what one looks like, which are accepted, and what each may do."""
