"""What a re-sharding asks of the shards that a collection leaves, and of those that it goes to.

No part of the API that is described.
"""

from __future__ import annotations

from dataclasses import asdict

from fastapi import Response

from tercet.service.routes.collections import Name
from tercet.service.routes.common import ADMIN, Services, json_response, router
from tercet.service.schemas.shards import (
    ShardBringRequest,
    ShardFenceRequest,
    ShardFolderRequest,
    ShardKeepRequest,
)
from tercet.service.shard.messages import COLLECTIONS

PATH = f"{COLLECTIONS}/{{name}}"

routes = router("shard")


@routes.put(f"{PATH}/fence", include_in_schema=False, dependencies=ADMIN)
async def fence_shard_collection(name: Name, body: ShardFenceRequest, services: Services) -> Response:
    """Have a collection refuse writes from now on, or take them again; the answer has its position."""
    position = await services.pools.operations.run(
        lambda: services.moves.fence(name, body.version, closed=body.closed)
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
async def keep_shard_collection(name: Name, body: ShardKeepRequest, services: Services) -> Response:
    """Have what was brought be a collection of its own from now on."""
    await services.pools.operations.run(services.moves.keep, name, body.version)
    return json_response({})
