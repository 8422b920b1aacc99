"""What a server answers as a shard of a collection that several servers hold together."""
