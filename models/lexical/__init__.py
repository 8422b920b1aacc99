"""Lexical weights: from a head over the vocabulary or from a table, and one for each term."""
