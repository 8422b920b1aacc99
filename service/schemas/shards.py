"""Shapes of what routers ask of shards."""

from __future__ import annotations

from typing import Any

from service.schemas.base import Request


class ShardCollectionRequest(Request):
    """The settings of a collection, as `service.answers.collection_settings` writes them."""

    settings: dict[str, Any]
    later_fields: dict[str, str]
    codebook: str | None = None
