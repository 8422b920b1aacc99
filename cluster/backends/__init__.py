"""Candidates from engines that hold exported collections; Tercet encodes and re-ranks."""
