"""Aliases: second names of collections."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Path, Response

from service.routes.common import ADMIN, Allowed, Services, errors, json_response, router
from service.routes.pages import Paged
from service.schemas.aliases import AliasList, AliasRequest, AliasResponse
from service.schemas.base import NAME_PATTERN


async def _alias(
    access: Allowed, alias: Annotated[str, Path(pattern=NAME_PATTERN, description="An alias's name.")]
) -> str:
    access.require_name(alias)
    return alias


Alias = Annotated[str, Depends(_alias)]
"""That of a path, which the key may use."""

routes = router("aliases")


@routes.get("/aliases", response_model=AliasList)
async def list_aliases(services: Services, access: Allowed, page: Paged) -> Response:
    """Aliases that the key may use, in order of name."""
    found = await services.pools.operations.run(services.collections.aliases.all)
    seen = [each for each in found if access.sees(each) and each > (page.after or "")]
    shown, more = page.of(seen, str)
    return json_response({"aliases": [{"alias": each, "collection": found[each]} for each in shown], **more})


@routes.get("/aliases/{alias}", response_model=AliasResponse, responses=errors(404, 422))
async def get_alias(alias: Alias, services: Services) -> Response:
    """The collection that an alias means."""
    collection = await services.pools.operations.run(services.collections.aliases.get, alias)
    return json_response({"alias": alias, "collection": collection})


@routes.put(
    "/aliases/{alias}", response_model=AliasResponse, responses=errors(404, 409, 422, 507), dependencies=ADMIN
)
async def put_alias(alias: Alias, body: AliasRequest, services: Services, access: Allowed) -> Response:
    """Make an alias, or switch it to another collection in one step: each request sees the one or the other.

    An alias goes wherever a collection's name does. The name of a collection is a conflict, 409.
    """
    access.require_name(body.collection, "collection")
    collection = await services.pools.operations.run(services.collections.aliases.put, alias, body.collection)
    return json_response({"alias": alias, "collection": collection})


@routes.delete("/aliases/{alias}", status_code=204, responses=errors(404, 422, 507), dependencies=ADMIN)
async def delete_alias(alias: Alias, services: Services) -> Response:
    """Remove an alias; its collection stays."""
    await services.pools.operations.run(services.collections.aliases.remove, alias)
    return Response(status_code=204)
