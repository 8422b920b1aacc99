"""Attention of an exported graph: the fused operator, and its mask."""
