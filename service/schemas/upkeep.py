"""Shapes of the routes of a collection's upkeep."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel


class MergeResponse(BaseModel):
    """A flush and merges have begun."""

    merging: Literal[True]
