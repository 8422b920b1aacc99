"""Documents of live collections: what requests bring, how they are encoded, written and read."""
