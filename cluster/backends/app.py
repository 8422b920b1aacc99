"""The application before an engine: that of a server, whose collections are those of the engine."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import orjson
from fastapi import FastAPI

from tercet.cluster.backends.collections import EngineCollections
from tercet.cluster.backends.engine import Engine, Replication
from tercet.cluster.ledgers.lease import server_of
from tercet.models.encoder import Encoder
from tercet.service.app import create_app
from tercet.service.exceptions import SettingsError
from tercet.service.settings.settings import Settings

CONSISTENCIES = {
    "qdrant": ("majority", "quorum", "all"),
    "milvus": ("Strong", "Session", "Bounded", "Eventually"),
}


def create_backend_app(settings: Settings, encoder: Encoder | None = None) -> FastAPI:
    """The server before the backend of the settings. encoder: one that is loaded already.

    Raises SettingsError where the engine's client is not installed, or BackendError where it does not open.
    """
    collections = EngineCollections(engine_of(settings), partial(server_of, settings.data))
    return create_app(settings, encoder, served=collections.served)


def engine_of(settings: Settings) -> Engine:
    """The engine of settings that name one. Raises as `create_backend_app`."""
    url, timeout = settings.backend_url or "", settings.backend_timeout_seconds
    key = None if settings.backend_key is None else settings.backend_key.get_secret_value()
    is_path = "://" not in url
    if is_path and settings.backend == "milvus" and not url.endswith(".db"):
        raise SettingsError(f"backend_url {url!r} is no URL, and the file of Milvus Lite ends in .db")
    if is_path and not _is_of_local_mode(Path(url), settings.backend):
        raise SettingsError(
            f"backend_url {url!r} is no URL, and {settings.backend} did not write what is there; give a path "
            "where nothing is, for collections that are made here, what tercet collection export --to "
            f"{settings.backend} wrote with --path, or the URL of a server"
        )
    replication = _replication(settings)
    try:
        if settings.backend == "qdrant":
            from tercet.cluster.backends.qdrant.engine import QdrantEngine
            from tercet.transfer.qdrant.connection import QdrantPlace

            place = QdrantPlace(None if is_path else url, url if is_path else None, key, timeout)
            return QdrantEngine(place, replication)
        from tercet.cluster.backends.milvus.engine import MilvusEngine
        from tercet.transfer.milvus.connection import MilvusPlace
    except ImportError as error:
        raise SettingsError(
            f"backend {settings.backend} needs its client ({error}): pip install -c constraints.txt "
            f"-e '.[cpu,{settings.backend}]'"
        ) from error
    return MilvusEngine(MilvusPlace(url, key, timeout), replication)


def _replication(settings: Settings) -> Replication:
    """How the engine divides and copies what is made. Raises SettingsError for a consistency it has not."""
    known, given = CONSISTENCIES[settings.backend or "qdrant"], settings.backend_consistency
    if given is not None and given not in known and not (settings.backend == "qdrant" and given.isdecimal()):
        numbers = " or a number of replicas" if settings.backend == "qdrant" else ""
        raise SettingsError(
            f"backend_consistency is {given!r}; {settings.backend} knows {', '.join(known)}{numbers}"
        )
    return Replication(settings.backend_shards, settings.backend_replicas, given)


def _is_of_local_mode(folder: Path, backend: str | None) -> bool:
    """Whether an engine's client wrote a folder, or may make one of its own there: nothing is there yet."""
    if not folder.exists():
        return True
    if backend == "milvus":
        return (folder / "collections").is_dir()
    try:
        record = orjson.loads((folder / "meta.json").read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return False
    return isinstance(record, dict) and "collections" in record
