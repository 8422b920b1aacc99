"""The shards of a collection: which documents each holds, and how one is asked."""
