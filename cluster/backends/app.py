"""The application before an engine: that of a server, whose collections are those of the engine."""

from __future__ import annotations

from pathlib import Path

import orjson
from fastapi import FastAPI

from tercet.cluster.backends.collections import EngineCollections
from tercet.cluster.backends.engine import Engine
from tercet.models.encoder import Encoder
from tercet.service.app import create_app
from tercet.service.exceptions import SettingsError
from tercet.service.settings.settings import Settings


def create_backend_app(settings: Settings, encoder: Encoder | None = None) -> FastAPI:
    """The server before the backend of the settings. encoder: one that is loaded already.

    Raises SettingsError where the engine's client is not installed, or BackendError where it does not open.
    """
    return create_app(settings, encoder, served=EngineCollections(engine_of(settings)).served)


def engine_of(settings: Settings) -> Engine:
    """The engine of settings that name one. Raises as `create_backend_app`."""
    url, timeout = settings.backend_url or "", settings.backend_timeout_seconds
    key = None if settings.backend_key is None else settings.backend_key.get_secret_value()
    is_path = "://" not in url
    if is_path and settings.backend == "milvus" and not url.endswith(".db"):
        raise SettingsError(f"backend_url {url!r} is no URL, and the file of Milvus Lite ends in .db")
    if is_path and not _is_of_local_mode(Path(url), settings.backend):
        raise SettingsError(
            f"backend_url {url!r} is no URL, and there is nothing that {settings.backend} wrote; give what "
            f"tercet collection export --to {settings.backend} wrote with --path, or the URL of a server"
        )
    try:
        if settings.backend == "qdrant":
            from tercet.cluster.backends.qdrant.engine import QdrantEngine
            from tercet.transfer.qdrant.connection import QdrantPlace

            return QdrantEngine(QdrantPlace(None if is_path else url, url if is_path else None, key, timeout))
        from tercet.cluster.backends.milvus.engine import MilvusEngine
        from tercet.transfer.milvus.connection import MilvusPlace
    except ImportError as error:
        raise SettingsError(
            f"backend {settings.backend} needs its client ({error}): pip install -c constraints.txt "
            f"-e '.[cpu,{settings.backend}]'"
        ) from error
    return MilvusEngine(MilvusPlace(url, key, timeout))


def _is_of_local_mode(folder: Path, backend: str | None) -> bool:
    """Whether an engine's client wrote a folder. Of any other the client would make one of its own."""
    if backend == "milvus":
        return (folder / "collections").is_dir()
    try:
        record = orjson.loads((folder / "meta.json").read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return False
    return isinstance(record, dict) and "collections" in record
