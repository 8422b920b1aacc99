"""What a server may be given when it is made, beside its settings."""

from __future__ import annotations

from typing import TypedDict

from tercet.index.ledger.remote import RemoteLedgers
from tercet.service.collections.served import Served
from tercet.service.copies.following import Following
from tercet.service.copies.lease import Lease
from tercet.service.copies.moving import Moving
from tercet.service.copies.publishing import Publishing
from tercet.service.remote.transport import Transport


class RuntimeParts(TypedDict, total=False):
    """Each is optional. served: collections that others have, by default its own;
    following: what brings collections from elsewhere, which are then read only; moving: what copies
    collections to an object store and from there; publishing: what publishes them; ledgers: what has their
    operations elsewhere, too; lease: knows whether this server is to write; worker_transport: how encoder
    workers are reached, by default by HTTP.
    """

    served: Served
    following: Following | None
    moving: Moving | None
    publishing: Publishing | None
    lease: Lease | None
    ledgers: RemoteLedgers | None
    worker_transport: Transport | None
