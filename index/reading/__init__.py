"""Stored documents of a snapshot: found by id, in pages and in order, as they are stored, and as queries."""
