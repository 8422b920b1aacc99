"""The router: collections that are divided over shards, in the place of those of one server."""
