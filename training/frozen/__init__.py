"""Fitting the two heads alone, on hidden states that are computed once."""
