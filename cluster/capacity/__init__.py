"""What a collection of some size takes: bytes, machines, hours and latency, from measured constants."""
