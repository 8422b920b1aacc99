"""Files that survive a crash, and arrays in them."""
