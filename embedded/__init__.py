"""Tercet inside a Python program: an encoder, and collections of a data root without a server."""
