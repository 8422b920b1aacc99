"""Windows of long documents: how they are stored, which of them counts, and which matches best."""
