"""What a router asks of a shard about whole collections. No part of the API that is described."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from fastapi import Path, Response

from tercet.index.errors import CollectionExistsError, SearchIndexError
from tercet.service.answers.collection_settings import (
    codebook_from,
    codebook_text,
    defaults_record,
    settings_from,
    settings_record,
)
from tercet.service.collections.readable import CollectionDescription
from tercet.service.copies.backups import CollectionBackups
from tercet.service.exceptions import InvalidRequestError
from tercet.service.routes.backups import backup_record
from tercet.service.routes.collections import Name, about_fields
from tercet.service.routes.common import ADMIN, WRITE, Allowed, Services, json_response, router
from tercet.service.runtime import Runtime
from tercet.service.schemas.collections import FieldsRequest
from tercet.service.schemas.shards import ShardClaimRequest, ShardCollectionRequest
from tercet.service.shard.messages import COLLECTIONS

routes = router("shard")


@routes.get(COLLECTIONS, include_in_schema=False)
async def list_shard_collections(services: Services, access: Allowed) -> Response:
    """All collections that the key may use, with all settings."""
    descriptions = await services.pools.operations.run(services.readable.list)
    allowed = [_record(known) for known in descriptions if access.sees(known.settings.name)]
    return json_response({"collections": allowed})


@routes.get(f"{COLLECTIONS}/{{name}}", include_in_schema=False)
async def get_shard_collection(name: Name, services: Services) -> Response:
    """One of them."""
    return json_response(_record(await services.pools.operations.run(services.readable.describe, name)))


@routes.put(f"{COLLECTIONS}/{{name}}", include_in_schema=False, dependencies=ADMIN)
async def create_shard_collection(name: Name, body: ShardCollectionRequest, services: Services) -> Response:
    """Create a collection of these settings, for whatever encoder; one that is there, alike and empty, stays.

    So a creation over shards that was cut short is completed by the next: the part of one that is there
    becomes that which is given, unless this claims an id for all parts. Another one of the name is a
    conflict, 409.
    """
    return json_response(await services.pools.operations.run(_create, services, name, body))


@routes.post(f"{COLLECTIONS}/{{name}}/fields/check", include_in_schema=False, dependencies=ADMIN)
async def check_shard_fields(name: Name, body: FieldsRequest, services: Services) -> Response:
    """Look whether fields could be declared, so that no shard declares what another one refuses."""

    def check() -> None:
        with services.own_collections.writing(name) as live, about_fields():
            live.check_fields(body.fields)

    await services.pools.operations.run(check)
    return Response(status_code=204)


@routes.post(f"{COLLECTIONS}/{{name}}/claims", include_in_schema=False, dependencies=WRITE)
async def claim_shard_documents(name: Name, body: ShardClaimRequest, services: Services) -> Response:
    """Have no documents of some ids put here until the claim ends. One that is here is a conflict, 409, and
    so is one of this shard's own that is here in another partition.
    """

    def claim() -> None:
        with services.own_collections.writing(name) as live:
            live.claim(body.ids, body.owner, own=body.own, ends=bool(body.ends))

    await services.pools.writes.run(claim)
    return Response(status_code=204)


@routes.post(f"{COLLECTIONS}/{{name}}/backups/{{backup_id}}", include_in_schema=False, dependencies=ADMIN)
async def make_shard_backup(
    name: Name, backup_id: Annotated[str, Path(max_length=100)], services: Services
) -> Response:
    """Back a collection up, under an id that all shards have alike."""

    def make(backups: CollectionBackups) -> dict[str, Any]:
        return backup_record(backups.make(name, backup_id))

    return json_response(await services.pools.backups.run(make, services.own_backups), 201)


def _create(services: Runtime, name: str, body: ShardCollectionRequest) -> dict[str, Any]:
    """Whether it was made, and not there already; and the id of its part."""
    try:
        given = settings_from(body.model_dump(), codebook_from(body.codebook), "settings")
    except (SearchIndexError, ValueError, TypeError, KeyError) as error:
        raise InvalidRequestError(str(error), "settings") from error
    part = None if given.lineage is None else given.lineage.part
    settings = replace(given.of_new_collection(given.name), lineage=given.lineage)
    made = True
    try:
        services.writes("creating collections").create(name, settings)
    except CollectionExistsError:
        made = False
        present = services.readable.describe(name) if name in services.collections.names() else None
        if present is None or present.documents or present.settings != settings:
            raise
        with services.own_collections.writing(name) as live:
            part = live.join(part, keeps_id=bool(body.claims))
    return {"created": made, "part": None if part is None else part.collection}


def _record(description: CollectionDescription) -> dict[str, Any]:
    return {
        **settings_record(description.settings),
        "codebook": codebook_text(description.settings),
        "snapshot": description.snapshot,
        "documents": description.documents,
        "defaults": defaults_record(description.defaults),
    }
