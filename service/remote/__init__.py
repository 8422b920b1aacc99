"""Other Tercet servers: the connections to them, whether each is well, and what a failed call means."""
