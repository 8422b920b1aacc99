"""Objects in the buckets of S3, Google Cloud Storage and Azure, or of what speaks their protocols."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError
from obstore.store import from_url

from tercet.cluster.errors import first_line
from tercet.cluster.objects.digests import SentFile, verified
from tercet.cluster.objects.errors import (
    AlreadyThereError,
    DamagedObjectError,
    ObjectMissingError,
    StoreAddressError,
    UnreachableStoreError,
)
from tercet.cluster.objects.store import Moved, ObjectStore, StoredObject, nobody
from tercet.index.files.directory import write_atomically

if TYPE_CHECKING:
    from obstore import ObjectMeta

FETCHED_BYTES = 8 << 20  # of one request: it is asked again where it fails, and not all of a file
CONCURRENT_PARTS = 4
LISTED = 1_000
DELETED = 1_000
CONNECT_SECONDS = 5
QUIET_SECONDS = 30  # of a connection on which nothing arrives
REQUEST_SECONDS = 600
RETRIES = 5
RETRY_SECONDS = 30
NO_BUCKET = "NoSuchBucket"
ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT", "AZURE_ENDPOINT")


class CloudStore:
    """The objects below one URL. Credentials, region and endpoint come from the provider's environment."""

    def __init__(self, url: str) -> None:
        """Reaches for nothing yet. Raises StoreAddressError."""
        self._url = url.rstrip("/")
        plain = any(os.environ.get(name, "").startswith("http://") for name in ENDPOINTS)
        try:
            self._store = from_url(
                self._url,
                client_options={
                    "connect_timeout": timedelta(seconds=CONNECT_SECONDS),
                    "read_timeout": timedelta(seconds=QUIET_SECONDS),
                    "timeout": timedelta(seconds=REQUEST_SECONDS),
                    **({"allow_http": True} if plain else {}),
                },
                retry_config={
                    "max_retries": RETRIES,
                    "retry_timeout": timedelta(seconds=RETRY_SECONDS),
                },
            )
        except (BaseError, ValueError) as error:
            raise StoreAddressError(f"{url!r} names no store: {first_line(error)}") from error

    @property
    def url(self) -> str:
        return self._url

    def create(self, path: str, content: bytes) -> None:
        with self._asking():
            try:
                obstore.put(self._store, path, content, mode="create")
            except (AlreadyExistsError, PreconditionError) as error:
                # The answer to a request that succeeded may be lost, and the request sent again.
                if self.get(path) != content:
                    raise AlreadyThereError(f"{self._url}/{path} is there already") from error

    def put_file(self, path: str, source: Path, sha256: str, moved: Moved = nobody) -> None:
        sent = SentFile(source, sha256, moved)
        with self._asking():
            if sent.size_bytes <= sent.part_bytes:
                obstore.put(self._store, path, b"".join(sent.parts()), use_multipart=False)
            else:
                obstore.put(
                    self._store,
                    path,
                    sent.parts(),
                    chunk_size=sent.part_bytes,
                    max_concurrency=CONCURRENT_PARTS,
                )
            try:
                self._require_stored(path, sent, sha256)
            except DamagedObjectError:
                self.delete([path])
                raise

    def has_file(self, path: str, source: Path, sha256: str) -> bool:
        sent = SentFile(source, sha256, nobody)
        for _ in sent.parts():
            pass
        try:
            with self._asking(path):
                self._require_stored(path, sent, sha256)
        except (ObjectMissingError, DamagedObjectError):
            return False
        return True

    def _require_stored(self, path: str, sent: SentFile, sha256: str) -> None:
        """By the store's own checksum where that tells; else what it has is read back."""
        found = obstore.head(self._store, path)
        if found["size"] != sent.size_bytes:
            raise DamagedObjectError(
                f"{self._url}/{path} has {found['size']} bytes after {sent.size_bytes} were sent; push again"
            )
        if (found["e_tag"] or "").strip('"') not in sent.e_tags:
            for _ in verified(self._pieces(path, nobody), sha256, f"{self._url}/{path}"):
                pass

    def get(self, path: str) -> bytes:
        with self._asking(path):
            return bytes(obstore.get(self._store, path).bytes())

    def get_file(self, path: str, target: Path, sha256: str, moved: Moved = nobody) -> None:
        with self._asking(path):
            write_atomically(target, verified(self._pieces(path, moved), sha256, f"{self._url}/{path}"))

    def _pieces(self, path: str, moved: Moved) -> Iterator[bytes]:
        size = obstore.head(self._store, path)["size"]
        for start in range(0, size, FETCHED_BYTES):
            end = min(start + FETCHED_BYTES, size)
            yield bytes(obstore.get_range(self._store, path, start=start, end=end))
            moved(end - start)

    def find(self, path: str) -> StoredObject | None:
        try:
            with self._asking(path):
                return _described(obstore.head(self._store, path))
        except ObjectMissingError:
            return None

    def list(self, folder: str = "") -> Iterator[StoredObject]:
        with self._asking():
            for found in obstore.list(self._store, folder.rstrip("/") or None, chunk_size=LISTED):
                yield from map(_described, found)

    def folders(self) -> Sequence[str]:
        with self._asking():
            found = obstore.list_with_delimiter(self._store)
        return sorted(prefix.rstrip("/").rpartition("/")[2] for prefix in found["common_prefixes"])

    def delete(self, paths: Iterable[str]) -> None:
        wanted = list(paths)
        for start in range(0, len(wanted), DELETED):
            with self._asking():
                try:
                    obstore.delete(self._store, wanted[start : start + DELETED])
                except FileNotFoundError:
                    continue

    def below(self, folder: str) -> ObjectStore:
        return CloudStore(f"{self._url}/{folder}")

    @contextmanager
    def _asking(self, path: str = "") -> Iterator[None]:
        """Tells what the store answers in our own words."""
        try:
            yield
        except FileNotFoundError as error:
            if error.filename is not None:  # a file of this machine
                raise
            if path and NO_BUCKET not in str(error):
                raise ObjectMissingError(f"{self._url}/{path} is not there") from error
            raise self._failed(error) from error
        except BaseError as error:
            raise self._failed(error) from error

    def _failed(self, error: Exception) -> UnreachableStoreError:
        return UnreachableStoreError(
            f"{self._url} cannot be used ({first_line(error)}); see to the address, the bucket, the "
            "credentials and the network"
        )


def _described(found: ObjectMeta) -> StoredObject:
    return StoredObject(found["path"], found["size"], found["last_modified"], found["e_tag"])
