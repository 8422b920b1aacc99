"""What a live collection does by itself, asked for by hand."""

from __future__ import annotations

from fastapi import Response

from tercet.service.routes.collections import Name
from tercet.service.routes.common import ADMIN, Services, errors, json_response, router
from tercet.service.runtime import Runtime
from tercet.service.schemas.upkeep import MergeResponse

routes = router("collections")


@routes.post(
    "/collections/{name}/merge",
    status_code=202,
    response_model=MergeResponse,
    responses=errors(404, 409, 422, 507),
    dependencies=ADMIN,
)
async def merge_collection(name: Name, services: Services) -> Response:
    """Flush what was written, and join segments of which there are many of a size.

    The answer comes when it begins; `stats` tell when it is done. Servers do both by themselves.
    """
    await services.pools.operations.run(_begin, services, name)
    return json_response({"merging": True}, 202)


def _begin(services: Runtime, name: str) -> None:
    with services.writes().writing(services.collections.aliases.collection_of(name)) as live:
        live.begin_merge()
