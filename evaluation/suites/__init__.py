"""Benchmarks as their publishers lay them out on disk, and what is measured of each."""
