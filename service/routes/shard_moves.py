"""What a re-sharding asks of the shards that a collection leaves, and of those that it goes to.

No part of the API that is described.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path as FilePath

from fastapi import Response

from tercet.index.catalog.lineage import ShardPart
from tercet.index.catalog.records import Record
from tercet.index.errors import SearchIndexError
from tercet.service.exceptions import InvalidRequestError
from tercet.service.routes.collections import Name
from tercet.service.routes.common import ADMIN, Services, json_response, router
from tercet.service.schemas.shards import (
    ShardBringRequest,
    ShardFolderRequest,
    ShardSettleRequest,
    ShardVersionRequest,
)
from tercet.service.shard.messages import COLLECTIONS

PATH = f"{COLLECTIONS}/{{name}}"

routes = router("shard")


@routes.put(f"{PATH}/fence", include_in_schema=False, dependencies=ADMIN)
async def fence_shard_collection(name: Name, body: ShardVersionRequest, services: Services) -> Response:
    """Have a collection refuse writes from now on; the answer has its position."""
    position = await services.pools.operations.run(services.moves.fence, name, body.version)
    return json_response({"position": position})


@routes.post(f"{PATH}/receive", include_in_schema=False, dependencies=ADMIN)
async def receive_shard_documents(name: Name, body: ShardFolderRequest, services: Services) -> Response:
    """Fetch the documents that are to come to a collection, which stays as it is."""
    return json_response(asdict(await services.pools.backups.run(services.moves.receive, name, body.folder)))


@routes.post(f"{PATH}/settle", include_in_schema=False, dependencies=ADMIN)
async def settle_shard_collection(name: Name, body: ShardSettleRequest, services: Services) -> Response:
    """Have a collection be a part of one over shards, and take writes again; the answer has its position."""
    try:
        part = ShardPart.of_record(Record.of({"collection": "0", **body.part}, FilePath("part")))
    except SearchIndexError as error:
        raise InvalidRequestError(str(error), "part") from error
    position = await services.pools.backups.run(
        services.moves.settle, name, body.version, part, body.received
    )
    return json_response({"position": position})


@routes.post(f"{PATH}/push", include_in_schema=False, dependencies=ADMIN)
async def push_shard_collection(name: Name, body: ShardFolderRequest, services: Services) -> Response:
    """Publish what is written by now."""
    return json_response(asdict(await services.pools.backups.run(services.moves.push, name, body.folder)))


@routes.post(f"{PATH}/bring", include_in_schema=False, dependencies=ADMIN)
async def bring_shard_collection(name: Name, body: ShardBringRequest, services: Services) -> Response:
    """Make the newest snapshot of a folder this server's."""
    moved = await services.pools.backups.run(services.moves.bring, name, body.folder, body.version)
    return json_response(asdict(moved))


@routes.post(f"{PATH}/keep", include_in_schema=False, dependencies=ADMIN)
async def keep_shard_collection(name: Name, body: ShardVersionRequest, services: Services) -> Response:
    """Have what was brought be a collection of its own from now on."""
    await services.pools.operations.run(services.moves.keep, name, body.version)
    return json_response({})
