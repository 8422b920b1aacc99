"""Opens a store by its URL, and looks whether it can be published on."""

from __future__ import annotations

import secrets
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tercet.cluster.objects.errors import (
    AlreadyThereError,
    OverwritingStoreError,
    StoreAddressError,
    UnreachableStoreError,
)
from tercet.cluster.objects.store import ObjectStore

BUCKETS = ("s3", "gs", "az")
PROBES = "probes"


def open_store(url: str) -> ObjectStore:
    """The store of a URL; nothing is asked of it yet. Raises StoreAddressError."""
    try:
        parts = urlsplit(url)
    except ValueError as error:  # such as a bracket that is not closed
        raise StoreAddressError(f"{url[:200]!r} names no store: {error}") from error
    path = unquote(parts.path)
    if "\0" in path:
        raise StoreAddressError(f"{_shown(url)} has a zero byte (%00) in its path; no folder's name has one")
    if parts.query or parts.fragment or "@" in parts.netloc:
        raise StoreAddressError(
            f"{_shown(url)} has more than scheme, bucket and path; give keys and settings in the "
            "environment (AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL, GOOGLE_APPLICATION_CREDENTIALS, "
            "AZURE_STORAGE_ACCOUNT_NAME and so on)"
        )
    if any(part in (".", "..") for part in path.split("/")):
        raise StoreAddressError(f"{_shown(url)} has . or .. in its path; name the folder itself")
    if parts.scheme == "file" and not parts.netloc and parts.path.startswith("/"):
        from tercet.cluster.objects.folder import FolderStore

        return FolderStore(Path(path))
    if parts.scheme in BUCKETS and parts.netloc:
        from tercet.cluster.objects.cloud import CloudStore

        return CloudStore(url)
    raise StoreAddressError(
        f"{_shown(url)} names no object store; give file:///folder, s3://bucket/path, gs://bucket/path or "
        "az://container/path"
    )


def require_creation(store: ObjectStore) -> datetime:
    """Looks whether of two who create the same object one is told so; returns the time by the store's clock.

    Raises OverwritingStoreError where both succeed: a publication there could be lost without a trace.
    """
    path = f"{PROBES}/{secrets.token_hex(8)}"
    first, second = (f"{path} {number}\n".encode() for number in (1, 2))
    store.create(path, first)
    try:
        found = store.find(path)
        try:
            store.create(path, second)
        except AlreadyThereError:
            pass
        else:
            raise _overwriting(store)
        if found is None or store.get(path) != first:
            raise _overwriting(store)
        return found.modified
    finally:
        with suppress(UnreachableStoreError):  # who may not delete may publish
            store.delete([path])


def _overwriting(store: ObjectStore) -> OverwritingStoreError:
    return OverwritingStoreError(
        f"{store.url} lets a second create overwrite the first (no conditional writes, If-None-Match: *), so "
        "of two publications one could be lost; use S3 itself, a server that keeps to it, or a folder"
    )


def _shown(url: str) -> str:
    """The URL without what may be a password."""
    parts = urlsplit(url)
    if not parts.scheme:
        return repr(url[:200])
    return repr(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"[:200])
