"""`tercet collection`: all that is done with a collection."""
