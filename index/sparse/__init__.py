"""Lexical weights: rows by document, the inverted index, and collection idf."""
