"""Files that clients send to a collection: taken in pieces, read, and written group by group."""
