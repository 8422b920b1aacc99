"""The online pipeline: from a query to hits, the same for HTTP, the command line and Python."""
