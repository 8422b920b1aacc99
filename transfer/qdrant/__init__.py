"""Qdrant: a point for each document."""
