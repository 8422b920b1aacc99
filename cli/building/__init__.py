"""Builds of collections: here, from what was exported, or by a server."""
