"""Fields of requests under the names that they had before, which work on (docs/stability.md)."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from pydantic import BaseModel

from tercet.service.exceptions import InvalidRequestError


def given(request: Request, body: BaseModel, name: str, former: str) -> tuple[str, Any]:
    """The name by which a field was given, and its value; its own name and None where it was not.

    Notes the use of the former name, which the answer's headers tell. Raises InvalidRequestError where both
    are given.
    """
    value, before = getattr(body, name), getattr(body, former)
    if before is None:
        return name, value
    if value is not None:
        raise InvalidRequestError(
            f"{name} and {former} are both given; leave out {former}, which is its former name", former
        )
    request.state.deprecated = True
    return former, before
