"""Shapes of what routers ask of shards."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Field

from tercet.service.schemas.base import Request

Version = Annotated[int, Field(ge=1, lt=2**63)]
"""Of the map of shards that is to come."""
Folder = Annotated[str, Field(max_length=200, pattern=r"^[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*$")]


class ShardCollectionRequest(Request):
    """The settings of a collection, as `tercet.service.answers.collection_settings` writes them. lineage: has
    the part of the collection over shards that the shard gets. claims: whether a collection that is there
    keeps the id of its part.
    """

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"settings": {"format_version": 1, "name": "x"}, "later_fields": {}}]}
    )

    settings: dict[str, Any]
    later_fields: dict[str, str]
    lineage: dict[str, Any] | None = None
    codebook: str | None = None
    claims: bool | None = False


class ShardClaimRequest(Request):
    """Ids of documents that another shard of a partitioned collection is about to get, by a put of this name,
    or by one that has ended. own: partitions by the ids that this shard is about to get.
    """

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"ids": ["tea", "rail"], "own": {"leaf": "x"}, "owner": "4f3c"}]}
    )

    ids: Annotated[list[str], Field(min_length=1, fail_fast=True)]
    own: dict[str, str] | None = None
    owner: Annotated[str, Field(min_length=1, max_length=64)]
    ends: bool | None = False


class ShardVersionRequest(Request):
    """A version of the map of shards: for which a collection refuses writes, or what was brought is kept."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"version": 2}]})

    version: Version


class ShardSettleRequest(ShardVersionRequest):
    """Which part of a collection over shards this server has by a version of the map, as `ShardPart` has it.
    received: the folder of documents that come, below the setting `snapshot_store`.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"version": 2, "part": {"number": 0, "of": 2, "buckets": [[0, 512]]}}]
        }
    )

    part: dict[str, Any]
    received: Folder | None = None


class ShardFolderRequest(Request):
    """Where a shard's snapshots are, below the setting `snapshot_store`."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"folder": "shards/1f2e3d4c-0"}]})

    folder: Folder


class ShardBringRequest(ShardFolderRequest):
    """Which snapshot is to become this server's."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"folder": "shards/1f2e3d4c-0", "version": 2}]})

    version: Version
