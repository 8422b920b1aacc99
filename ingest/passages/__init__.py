"""Passages of documents: where a text is cut, and what each part is called."""
