"""Segments: the parts of some documents, written once and searched."""
