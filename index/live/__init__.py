"""What a collection has accepted and no published segment holds yet."""
