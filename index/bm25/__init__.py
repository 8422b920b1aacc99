"""BM25 as a side of its own: a document's words, counted, beside what the encoder makes of it."""
