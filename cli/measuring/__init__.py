"""What `tercet eval` takes and prints."""
