"""Where commands find collections: the data root of this machine, or a server by `--url`."""
