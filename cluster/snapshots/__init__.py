"""A collection's snapshots on an object store: published, fetched, followed, and collected in the end."""
