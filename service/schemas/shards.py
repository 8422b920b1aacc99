"""Shapes of what routers ask of shards."""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict

from service.schemas.base import Request


class ShardCollectionRequest(Request):
    """The settings of a collection, as `service.answers.collection_settings` writes them."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"settings": {"format_version": 1, "name": "x"}, "later_fields": {}}]}
    )

    settings: dict[str, Any]
    later_fields: dict[str, str]
    codebook: str | None = None
