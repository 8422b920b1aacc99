"""Hybrid retrieval: dense, sparse and ColBERT of one encoder pass, and their exact sum for every hit."""
