"""Shapes of the routes of backups."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from tercet.service.schemas.base import NAME_PATTERN, NextPage, Position, Request

BACKUP: JsonDict = {
    "id": "20261123t024501-ab12",
    "collection": "articles",
    "position": 17,
    "documents": 1400,
    "size_bytes": 9_400_000,
    "created_at": "2026-11-23T02:45:01.123Z",
    "created": "2026-11-23T02:45:01.123Z",
}


class RestoreRequest(Request):
    """Where a backup is restored to."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "articles-before"}]})

    name: Annotated[str, Field(pattern=NAME_PATTERN)] | None = Field(
        None,
        description="The name of a new collection; by default the collection's own, whose documents and "
        "defaults are replaced.",
    )


class BackupResponse(BaseModel):
    """A backup of a collection."""

    model_config = ConfigDict(json_schema_extra={"examples": [BACKUP]})

    id: str
    collection: str
    position: Annotated[Position, Field(description="The last write that it holds.")]
    documents: int
    size_bytes: int = Field(
        description="Bytes of all its files. Most share their room on the disk with the collection, where "
        "the file system has hard links."
    )
    created_at: str = Field(description="ISO 8601, in UTC.")


class BackupList(BaseModel):
    """The backups of a collection, the newest first."""

    backups: list[BackupResponse]
    next: NextPage = None
