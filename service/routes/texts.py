"""Limits on texts that requests bring."""

from __future__ import annotations

from collections.abc import Sequence

from service.exceptions import InvalidRequestError, RequestTooLargeError


def check_count(texts: Sequence[str], limit: int, param: str, setting: str) -> None:
    """Raises RequestTooLargeError where there are too many."""
    if len(texts) > limit:
        raise RequestTooLargeError(
            f"{param} has {len(texts)} texts; the limit is {limit} (setting {setting}): split the request",
            param,
        )


def check_characters(texts: Sequence[str], limit: int, param: str) -> None:
    """Raises InvalidRequestError naming the first text that is too long."""
    for position, text in enumerate(texts):
        if len(text) > limit:
            where = f"{param}.{position}" if len(texts) > 1 else param
            raise InvalidRequestError(
                f"{where} has {len(text)} characters; the limit is {limit} (setting max_characters)",
                where,
                "too_many_characters",
            )
