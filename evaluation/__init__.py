"""Measuring retrieval quality on judged collections."""
