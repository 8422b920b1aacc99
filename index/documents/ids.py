"""Ids that are numbers where they come from: one rule for files, requests and tables."""

from __future__ import annotations

from tercet.index.documents.numbers import as_integer


def identifier_of(value: object) -> object:
    """The text of an id that is a whole number, be it a float: its decimal digits.

    Tables write whole numbers with an empty cell among them as floats, and BEIR's judgments name ids as text.
    Any other value is given as it is, for those who take ids to refuse: a float beyond ±2^53 may have been
    rounded, and true is no number.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        whole = as_integer(value)
        return value if isinstance(whole, float) or whole.bit_length() > 2048 else str(whole)
    return value
