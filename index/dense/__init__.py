"""Dense vectors and their search."""
