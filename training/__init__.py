"""Fitting encoders and heads."""
