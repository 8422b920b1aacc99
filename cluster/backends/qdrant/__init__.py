"""Qdrant, as an engine that proposes candidates."""
