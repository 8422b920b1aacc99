"""Texts and pairs for training: read, tokenized to disk, put into batches."""
