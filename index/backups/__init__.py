"""Backups of collections: made while they are written, verified, restored in one step."""
