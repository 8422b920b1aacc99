"""Weights beside those of a body, from the files of each library into the arrays that engines read."""
