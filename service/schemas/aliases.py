"""Shapes of the routes of aliases."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from tercet.index.catalog.aliases import MOST_COLLECTIONS
from tercet.service.schemas.base import NAME_PATTERN, NextPage, Request

CollectionName = Annotated[str, Field(pattern=NAME_PATTERN)]


class AliasRequest(Request):
    """What an alias means: one collection, or several."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"collection": "demo"}]})

    collection: CollectionName | None = Field(
        None,
        description="A collection; or another alias, which stands for what it means now. Or give "
        "`collections`.",
    )
    collections: (
        Annotated[
            list[CollectionName],
            Field(min_length=1, max_length=MOST_COLLECTIONS, fail_fast=True),
        ]
        | None
    ) = Field(
        None,
        description="Several, which are searched and read as one: of one encoder, and alike in what a score "
        "depends on. The stored defaults of the first count.",
    )


class AliasResponse(BaseModel):
    """An alias, and what it means."""

    alias: str
    collection: str | None = Field(description="The collection; null where there are several.")
    collections: list[str] = Field(description="All of them, in the order in which they were given.")


class AliasList(BaseModel):
    """Aliases, in order of name."""

    aliases: list[AliasResponse]
    next: NextPage = None
