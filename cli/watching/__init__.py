"""Keeping a collection like a folder of files of text."""
