"""Hybrid retrieval: dense vectors, lexical weights and ColBERT token vectors of one pass, and their exact
sum."""
