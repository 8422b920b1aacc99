"""Encoder workers elsewhere, used as one encoder."""
