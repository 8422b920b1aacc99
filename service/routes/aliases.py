"""Aliases: second names of collections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import Depends, Path, Response

from tercet.service.answers.aliases import alias_record
from tercet.service.exceptions import InvalidRequestError
from tercet.service.requests.keys import require_meant
from tercet.service.routes.common import ADMIN, Allowed, Services, errors, json_response, router
from tercet.service.routes.pages import Paged
from tercet.service.schemas.aliases import AliasList, AliasRequest, AliasResponse
from tercet.service.schemas.base import NAME_PATTERN


async def _alias(
    access: Allowed, alias: Annotated[str, Path(pattern=NAME_PATTERN, description="An alias's name.")]
) -> str:
    access.require_name(alias)
    return alias


Alias = Annotated[str, Depends(_alias)]
"""The alias that a path names, which the key may use."""

routes = router("aliases")


def _collections(body: AliasRequest) -> Sequence[str]:
    """The names that an alias is to mean. Raises InvalidRequestError."""
    if body.collections is None:
        if body.collection is None:
            raise InvalidRequestError(
                "collection is missing; give it, or collections", "collection", "missing_field"
            )
        return [body.collection]
    if body.collection is not None:
        raise InvalidRequestError("collection and collections are both given; leave one out", "collections")
    return body.collections


@routes.get("/aliases", response_model=AliasList)
async def list_aliases(services: Services, access: Allowed, page: Paged) -> Response:
    """Aliases that the key may use, in order of name."""
    aliases = await services.pools.operations.run(services.collections.aliases.all)
    seen = [alias for alias in aliases if access.sees(alias) and alias > (page.after or "")]
    shown, more = page.of(seen, str)
    return json_response({"aliases": [alias_record(alias, aliases[alias]) for alias in shown], **more})


@routes.get("/aliases/{alias}", response_model=AliasResponse, responses=errors(404, 422))
async def get_alias(alias: Alias, services: Services) -> Response:
    """The collection that an alias means, or the several ones."""
    meant = await services.pools.operations.run(services.collections.aliases.get, alias)
    return json_response(alias_record(alias, meant))


@routes.put(
    "/aliases/{alias}", response_model=AliasResponse, responses=errors(404, 409, 422, 507), dependencies=ADMIN
)
async def put_alias(alias: Alias, body: AliasRequest, services: Services, access: Allowed) -> Response:
    """Make an alias, or switch it to other collections in one step: each request sees the one or the other.

    An alias goes wherever a collection's name does. Several collections of one encoder are searched and read
    as one, and not written; ones that cannot be searched so are a conflict, 409, as is the name of a
    collection.
    """
    names = _collections(body)
    for index, name in enumerate(names):
        param = "collection" if body.collections is None else f"collections.{index}"
        access.require_name(name, param)
        await require_meant(services, access, [name], param)
    meant = await services.pools.operations.run(services.collections.aliases.put, alias, *names)
    return json_response(alias_record(alias, meant))


@routes.delete("/aliases/{alias}", status_code=204, responses=errors(404, 422, 507), dependencies=ADMIN)
async def delete_alias(alias: Alias, services: Services) -> Response:
    """Remove an alias; its collections stay."""
    await services.pools.operations.run(services.collections.aliases.remove, alias)
    return Response(status_code=204)
