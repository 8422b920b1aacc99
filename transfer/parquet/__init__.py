"""Parquet: a row for each document."""
