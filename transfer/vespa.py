"""Feeds documents into Vespa by its document API, or writes an application and a feed for `vespa feed`."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson

from tercet.index.candidates import Document
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.documents.fields import field_values
from tercet.index.documents.metadata import value_at
from tercet.models.representations import Float32
from tercet.transfer.errors import TransferError
from tercet.transfer.folders import abandon_folder, begin_folder
from tercet.transfer.push import exists, left_over
from tercet.transfer.queries import CANDIDATES, HITS, CollectionQuery, one_line
from tercet.transfer.records import DocumentLimits, StoredDocuments
from tercet.transfer.rest import RestServer
from tercet.transfer.vespa_schema import (
    PROFILE,
    WEIGHT_UNIT,
    field_name,
    schema_of,
    services_of,
    vespa_name,
)

AT_A_TIME = 8  # requests to the document API
MARKER = "services.xml"
# Vespa refuses text with control characters but tab, line feed and carriage return, and with noncharacters.
_REFUSED = dict.fromkeys(
    [*range(9), 11, 12, *range(14, 32), *range(0xFDD0, 0xFDF0), 0xFFFE, 0xFFFF], "\ufffd"
)


def feed_fields(documents: StoredDocuments, row: int, settings: CollectionSettings) -> dict[str, Any]:
    """The fields of one document, as the document API and a feed have them."""
    document, texts = documents.documents[row], documents.encodings(row)
    terms = documents.terms(row)
    fields: dict[str, Any] = {
        "id": document.id.translate(_REFUSED),
        "text": document.text.translate(_REFUSED),
        "metadata": orjson.dumps(document.metadata).decode().translate(_REFUSED),
        **_declared(document, settings),
        "terms": {term: max(1, round(weight * WEIGHT_UNIT)) for term, weight in terms.items()},
        "sparse": {"cells": terms},
    }
    if document.title is not None:
        fields["title"] = document.title.translate(_REFUSED)
    tokens = documents.token_vectors(row) if settings.stores_token_vectors else None
    if documents.windows is None:
        fields["dense"] = {"values": documents.dense[row]}
        if tokens is not None:
            fields["colbert"] = {"blocks": _blocks(tokens)}
        return fields
    fields["dense"] = {"blocks": _blocks(documents.dense[texts.start : texts.stop])}
    if tokens is not None and documents.colbert is not None:
        offsets = documents.colbert.offsets
        fields["colbert"] = {
            "blocks": [
                {
                    "address": {"w": str(number), "j": str(token)},
                    "values": documents.colbert.vectors[int(offsets[text]) + token],
                }
                for number, text in enumerate(texts)
                for token in range(int(offsets[text + 1] - offsets[text]))
            ]
        }
    return fields


def search_body(name: str, query: CollectionQuery) -> dict[str, Any]:
    """The body of a POST to `/search/`."""
    proposing = [f"{{targetHits: {CANDIDATES}}}nearestNeighbor(dense, dense)"]
    if query.terms:
        unit = WEIGHT_UNIT
        pairs = ", ".join(f"[{term}, {max(1, round(weight * unit))}]" for term, weight in query.terms.items())
        proposing.append(f"({{targetHits: {CANDIDATES}}}wand(terms, [{pairs}]))")
    where = " or ".join(f"({condition})" for condition in proposing)
    body: dict[str, Any] = {
        "yql": f"select id, title, text, metadata from {name} where {where}",  # noqa: S608  # names are ours
        "ranking": PROFILE,
        "hits": HITS,
        "input.query(dense)": query.dense,
        "input.query(sparse)": query.terms,
        "input.query(weight_dense)": query.sides.dense,
        "input.query(weight_sparse)": query.sides.sparse,
    }
    if query.colbert is not None:
        body["input.query(colbert)"] = _blocks(query.colbert)
        body["input.query(weight_colbert)"] = query.sides.colbert
    return body


class VespaTarget:
    """A running application that has the schema, or a folder that becomes one."""

    limits = DocumentLimits()

    def __init__(
        self,
        name: str,
        settings: CollectionSettings,
        batch: int,
        *,
        server: RestServer | None = None,
        folder: Path | None = None,
    ) -> None:
        """server or folder: one of them. settings: the codec is none where token vectors are left out."""
        self._type = vespa_name(name)
        self._settings = settings
        self._server = server
        self._folder = folder
        self._pool: ThreadPoolExecutor | None = None
        self.batch = (batch, 16_384)
        self.name = f"Vespa document type {self._type!r}" if server is not None else str(folder)
        self.remarks = ["text that Vespa refuses, such as control characters, becomes U+FFFD"]

    def begin(self, description: dict[str, Any], *, overwrite: bool, resume: bool) -> None:
        """Raises TargetExistsError or TransferError; an application is deployed by `vespa deploy` before."""
        if self._server is None:
            begin_folder(self._folder, MARKER, overwrite=overwrite, resume=resume)
            if self._folder is not None:
                (self._folder / "schemas").mkdir()
                schema = schema_of(self._type, self._settings)
                (self._folder / "schemas" / f"{self._type}.sd").write_text(schema, encoding="utf-8")
                (self._folder / MARKER).write_text(services_of(self._type), encoding="utf-8")
                content = orjson.dumps(description, option=orjson.OPT_INDENT_2) + b"\n"
                (self._folder / "tercet.json").write_bytes(content)
            return
        if overwrite:
            raise TransferError(
                "documents of a Vespa application are not removed from here: remove them there, or give "
                "--resume, by which documents with the same ids are replaced"
            )
        answer = self._server.ask("GET", f"{self._path}/", params={"wantedDocumentCount": 1}).json()
        if answer.get("documents") and not resume:
            raise exists(self.name)
        self._pool = ThreadPoolExecutor(AT_A_TIME, thread_name_prefix="feed")

    def write(self, documents: StoredDocuments) -> None:
        """Puts documents; those with the same ids are replaced."""
        if self._server is None:
            if self._folder is not None:
                with (self._folder / "feed.jsonl").open("ab") as file:
                    file.writelines(self._operations(documents))
            return
        if self._pool is None:
            raise TransferError(f"{self.name} was not begun")
        list(self._pool.map(lambda row: self._put(documents, row), range(len(documents))))

    def finish(self) -> None:
        """Nothing: each write waited for its answers."""

    def close(self) -> None:
        """Lets go of connections."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
        if self._server is not None:
            self._server.close()

    def abandon(self, written: int) -> str:
        """Removes files; of a server says what is there."""
        if self._server is None:
            return abandon_folder(self._folder)
        return left_over(self.name, written).replace(", or begin with --overwrite", "")

    def query(self, query: CollectionQuery) -> str:
        """A request that `curl` sends."""
        body = orjson.dumps(search_body(self._type, query), option=orjson.OPT_SERIALIZE_NUMPY).decode()
        url, key = "http://127.0.0.1:8080", ""
        if self._server is not None:
            url = str(self._server.client.base_url).rstrip("/")
            if "Authorization" in self._server.client.headers:
                key = ' -H "Authorization: Bearer $VESPA_TOKEN"'
        return (
            f"# {one_line(query.text)}\ncurl -s '{url}/search/'{key} -H 'Content-Type: application/json' "
            f"--data-binary @- <<'EOF'\n{body}\nEOF\n"
        )

    @property
    def _path(self) -> str:
        return f"/document/v1/{self._type}/{self._type}/docid"

    def _operations(self, documents: StoredDocuments) -> Iterator[bytes]:
        for row, document in enumerate(documents.documents):
            operation = {
                "put": f"id:{self._type}:{self._type}::{document.id.translate(_REFUSED)}",
                "fields": feed_fields(documents, row, self._settings),
            }
            yield orjson.dumps(operation, option=orjson.OPT_SERIALIZE_NUMPY) + b"\n"

    def _put(self, documents: StoredDocuments, row: int) -> None:
        fields = feed_fields(documents, row, self._settings)
        content = orjson.dumps({"fields": fields}, option=orjson.OPT_SERIALIZE_NUMPY)
        if self._server is not None:
            self._server.ask("POST", f"{self._path}/{quote(fields['id'], safe='')}", content)


def _blocks(vectors: Float32) -> dict[str, Float32]:
    """A tensor with one mapped dimension: rows under their numbers."""
    return {str(number): vector for number, vector in enumerate(vectors)}


def _declared(document: Document, settings: CollectionSettings) -> dict[str, Any]:
    """The values of declared fields that a document has."""
    fields: dict[str, Any] = {}
    for field, kind in settings.fields.items():
        values = field_values(field, kind, value_at(document.metadata, field))
        if kind == "keyword":
            fields[field_name(field)] = [value.decode().translate(_REFUSED) for value in values]
        elif values:
            if len(values) > 1:
                raise TransferError(
                    f"document {document.id!r:.80} has {len(values)} values in {field!r}, and the schema for "
                    "Vespa has room for one; keep one, or export to another system"
                )
            fields[field_name(field)] = values[0]
    return fields
