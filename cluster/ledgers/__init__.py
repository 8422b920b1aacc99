"""Ledgers of collections on an object store, so that no acknowledged write is lost with a server's disk."""
