"""A search over segments: the query, candidates, explanations."""
