"""Collections in another number of shards, from what is stored: nothing is encoded again."""
