"""Milvus: a row for each document."""
