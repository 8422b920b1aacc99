"""The shape of `boosts`, for the description alone: `index/documents/boosts.py` parses and checks one."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, RootModel

from tercet.index.documents.boosts import HALF, LARGEST_ADD, MAX_BOOSTS, Decay
from tercet.service.schemas.filters import DescribedAs, Filter

Add = Annotated[
    float,
    Field(ge=-LARGEST_ADD, le=LARGEST_ADD, description="Points of the score; below 0 they are taken away."),
]


class FilterBoost(BaseModel):
    """Points for every document that a filter matches."""

    model_config = ConfigDict(extra="forbid")

    filter: Filter
    add: Add


class DecayBoost(BaseModel):
    """Points for documents with a value near an origin, fewer the further away it is; none without."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"field": "published", "decay": "exp", "origin": "2026-01-01", "scale": "30d", "add": 0.2}
            ]
        },
    )

    field: str = Field(description="A declared field of type datetime, integer or number.")
    decay: Decay = Field(description="How the points become fewer.")
    origin: str | float = Field(description="Where all points are given: a moment, or a number.")
    scale: str | float = Field(
        description="How far beyond `offset` the share of `at_scale` is left: for a datetime a number with "
        "`s`, `m`, `h`, `d` or `w` such as `30d`, else a number."
    )
    add: Add
    offset: str | float | None = Field(None, description="How far from the origin all points are given.")
    at_scale: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        HALF, description="The share of the points that is left at the scale."
    )


class Boost(RootModel[FilterBoost | DecayBoost]):
    """Points that are added to the score of a document for what its fields say."""


Boosts = Annotated[
    list[Annotated[dict[str, Any], DescribedAs(Boost)]], Field(max_length=MAX_BOOSTS, fail_fast=True)
]
