"""Shapes of the routes of aliases."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from service.schemas.base import NAME_PATTERN, NextPage, Request


class AliasRequest(Request):
    """What an alias means."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"collection": "demo"}]})

    collection: Annotated[str, Field(pattern=NAME_PATTERN)] = Field(
        description="A collection; or another alias, which stands for the collection that it means now."
    )


class AliasResponse(BaseModel):
    """An alias, and the collection that it means."""

    alias: str
    collection: str


class AliasList(BaseModel):
    """Aliases, in order of name."""

    aliases: list[AliasResponse]
    next: NextPage = None
