"""Documents of a segment: ids, contents, declared fields, and filters over these."""
