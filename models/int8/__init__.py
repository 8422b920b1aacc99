"""Graphs made small: weights of 8 or 4 bits, what is lost by it, and the way back."""
