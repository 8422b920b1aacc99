"""Encoders: text to tokens to the three representations."""
