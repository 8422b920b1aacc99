"""The edge of the server: the wire, keys, bodies, and what happens around every request."""
