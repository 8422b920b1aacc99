"""Builds of collections in shards, straight to an object store."""
