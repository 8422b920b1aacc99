"""Training pairs before training: which of them are worth it, and new ones that a language model asks."""
