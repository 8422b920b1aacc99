"""Milvus, as an engine that proposes candidates."""
