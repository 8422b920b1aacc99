"""Backups of collections: make, list, restore, remove."""

from __future__ import annotations

from operator import attrgetter
from typing import Annotated, Any

from fastapi import Path, Response

from tercet.service.collections.served import ServedBackup
from tercet.service.routes.collections import Name, collection_record
from tercet.service.routes.common import ADMIN, Allowed, Services, errors, json_response, router
from tercet.service.routes.pages import Paged
from tercet.service.schemas.backups import BackupList, BackupResponse, RestoreRequest
from tercet.service.schemas.collections import CollectionResponse

BACKUPS = "/collections/{name}/backups"

BackupId = Annotated[str, Path(description="A backup's id.")]

routes = router("backups")


@routes.post(
    BACKUPS,
    status_code=201,
    response_model=BackupResponse,
    responses=errors(404, 409, 422, 507),
    dependencies=ADMIN,
)
async def make_backup(name: Name, services: Services) -> Response:
    """Back a collection up, with every write that was acknowledged before.

    Searches and writes go on meanwhile. The backup is verified before the answer, so every byte of the
    collection is read.
    """
    return json_response(
        backup_record(await services.pools.backups.run(services.backups("making backups").make, name)), 201
    )


@routes.get(BACKUPS, response_model=BackupList, responses=errors(404, 409, 422))
async def list_backups(name: Name, services: Services, page: Paged) -> Response:
    """The backups of a collection, the newest first; also of one that was deleted."""
    services.require_open()
    backups = services.served.backups
    existing = [] if backups is None else await services.pools.operations.run(backups.list, name)
    # Ids begin with the time, so that one which is gone still has its place.
    behind = [backup for backup in existing if page.after is None or backup.id < page.after]
    shown, more = page.of(behind, attrgetter("id"))
    return json_response({"backups": [backup_record(backup) for backup in shown], **more})


@routes.post(
    f"{BACKUPS}/{{backup_id}}/restore",
    response_model=CollectionResponse,
    responses=errors(404, 409, 422, 507),
    dependencies=ADMIN,
)
async def restore_backup(
    name: Name,
    backup_id: BackupId,
    services: Services,
    access: Allowed,
    body: RestoreRequest | None = None,
) -> Response:
    """Replace a collection's documents and defaults by those of a backup, or restore it under a new name.

    The backup is verified before anything changes, and stays. Searches go on, and see what was before or what
    the backup has. Writes that are acknowledged after the restore began survive it.
    """
    if body is not None and body.name is not None:
        access.require_name(body.name, "name")
    restored = await services.pools.backups.run(
        services.backups("restoring backups").restore, name, backup_id, None if body is None else body.name
    )
    return json_response(collection_record(restored))


@routes.delete(
    f"{BACKUPS}/{{backup_id}}", status_code=204, responses=errors(404, 409, 422, 507), dependencies=ADMIN
)
async def delete_backup(name: Name, backup_id: BackupId, services: Services) -> Response:
    """Remove a backup; the collection stays."""
    await services.pools.operations.run(services.backups("deleting backups").delete, name, backup_id)
    return Response(status_code=204)


def backup_record(backup: ServedBackup) -> dict[str, Any]:
    """A backup as answers have it."""
    return {
        "id": backup.id,
        "collection": backup.collection,
        "position": backup.position,
        "documents": backup.documents,
        "size_bytes": backup.size_bytes,
        "created_at": backup.created,
    }
