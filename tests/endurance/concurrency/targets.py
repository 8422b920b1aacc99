"""A collection as writers and readers use it: in this process, or over HTTP."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Protocol
from urllib.parse import quote

import httpx
import numpy as np

from tercet.index.candidates import Document
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.errors import DocumentNotFoundError, WriteOverloadedError
from tercet.index.live.collection import LiveCollection
from tercet.models.representations import Representations, SparseRows, TokenVectors
from tests.endurance.concurrency.history import Value

COLLECTION = "concurrent"
DIMENSION, TOKEN_DIMENSION, VOCABULARY, TERMS, TOKENS = 32, 16, 1000, 10, 8
SETTINGS = CollectionSettings(
    COLLECTION, "made up", "0" * 64, DIMENSION, TOKEN_DIMENSION, VOCABULARY, lexical="idf", bm25=True
)
Found = list[tuple[str, Value]]


class OverloadedError(Exception):
    """Back-pressure: the write was refused, and may be tried again."""


class Target(Protocol):
    """One caller's view of a collection. Writes return its position; a position of 0: nothing was there."""

    def put(self, ids: Sequence[str], tag: str) -> int: ...

    def delete(self, ids: Sequence[str]) -> tuple[int, int]: ...

    def patch(self, name: str, tag: str) -> int: ...

    def get(self, name: str) -> Value | None: ...

    def page(self, after: str | None, limit: int) -> Found: ...

    def search(self, name: str) -> Found: ...


class InProcess:
    """A live collection of this process, with made-up representations."""

    def __init__(self, live: LiveCollection) -> None:
        self._live = live

    def put(self, ids: Sequence[str], tag: str) -> int:
        try:
            documents = [Document(name, _text(name, tag), None, {"tag": tag}) for name in ids]
            return self._live.put(documents, representations(ids)).position
        except WriteOverloadedError as error:
            raise OverloadedError from error

    def delete(self, ids: Sequence[str]) -> tuple[int, int]:
        written = self._live.delete(ids)
        return written.position if written.documents else 0, written.documents

    def patch(self, name: str, tag: str) -> int:
        try:
            return self._live.patch(name, {"tag": tag}).position
        except DocumentNotFoundError:
            return 0

    def get(self, name: str) -> Value | None:
        found = self._live.snapshot().get(name)
        return None if found is None else _value(found.text, found.metadata["tag"])

    def page(self, after: str | None, limit: int) -> Found:
        found = self._live.snapshot().page(after, limit)
        return [(each.id, _value(each.text, each.metadata["tag"])) for each in found]

    def search(self, name: str) -> Found:
        hits = self._live.snapshot().search(representations([name]), text=name).hits
        found = [hit.document for hit in hits]
        return [(each.id, _value(each.text, each.metadata["tag"])) for each in found]


class OverHttp:
    """A collection of a server, which encodes; one caller's connection."""

    def __init__(self, url: str) -> None:
        self._client = httpx.Client(base_url=url, timeout=60)
        self._documents = f"/collections/{COLLECTION}/documents"

    def put(self, ids: Sequence[str], tag: str) -> int:
        documents = [{"id": name, "text": _text(name, tag), "metadata": {"tag": tag}} for name in ids]
        return int(self._ask("PUT", self._documents, {"documents": documents})["position"])

    def delete(self, ids: Sequence[str]) -> tuple[int, int]:
        answer = self._ask("POST", f"{self._documents}/delete", {"ids": list(ids)})
        return int(answer["position"]) if answer["deleted"] else 0, int(answer["deleted"])

    def patch(self, name: str, tag: str) -> int:
        answer = self._ask("PATCH", self._at(name), {"metadata": {"tag": tag}}, missing={"position": 0})
        return int(answer["position"])

    def get(self, name: str) -> Value | None:
        found = self._ask("GET", self._at(name), missing={})
        return _value(found["text"], found["metadata"]["tag"]) if found else None

    def page(self, after: str | None, limit: int) -> Found:
        begin = "" if after is None else f"&after={quote(after, safe='')}"
        found = self._ask("GET", f"{self._documents}?limit={limit}{begin}")["documents"]
        return [(each["id"], _value(each["text"], each["metadata"]["tag"])) for each in found]

    def search(self, name: str) -> Found:
        hits = self._ask("POST", "/search", {"collection": COLLECTION, "query": name})["hits"]
        return [(each["id"], _value(each["text"], each["metadata"]["tag"])) for each in hits]

    def _at(self, name: str) -> str:
        return f"{self._documents}/{quote(name, safe='')}"

    def _ask(self, method: str, path: str, body: object = None, missing: object = None) -> dict:  # type: ignore[type-arg]
        response = self._client.request(method, path, json=body)
        if response.status_code == httpx.codes.TOO_MANY_REQUESTS:
            raise OverloadedError
        if response.status_code == httpx.codes.NOT_FOUND and missing is not None:
            return dict(missing)  # type: ignore[call-overload, no-any-return]
        response.raise_for_status()
        return dict(response.json())


def representations(ids: Sequence[str]) -> Representations:
    """Made up of ids, so that a search for one finds its document and those like it."""
    count = len(ids)
    generators = [np.random.default_rng(zlib.crc32(name.encode())) for name in ids]
    dense = np.stack([generator.standard_normal(DIMENSION) for generator in generators])
    tokens = np.concatenate([each.standard_normal((TOKENS, TOKEN_DIMENSION)) for each in generators])
    terms = [np.sort(each.choice(VOCABULARY, TERMS, replace=False)) for each in generators]
    return Representations(
        np.full(count, TOKENS + 1, np.int64),
        np.zeros(count, np.bool_),
        (dense / np.linalg.norm(dense, axis=1, keepdims=True)).astype(np.float32),
        SparseRows(
            np.arange(count + 1) * TERMS,
            np.concatenate(terms).astype(np.int32),
            np.concatenate([each.uniform(0.1, 2, TERMS) for each in generators]).astype(np.float32),
        ),
        TokenVectors(
            (tokens / np.linalg.norm(tokens, axis=1, keepdims=True)).astype(np.float32),
            np.arange(count + 1) * TOKENS,
        ),
    )


def _text(name: str, tag: str) -> str:
    return f"{name} as written by {tag}"


def _value(text: str, tag: str) -> Value:
    return text.rpartition(" ")[2], tag
