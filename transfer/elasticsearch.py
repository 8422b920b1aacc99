"""Pushes documents into an Elasticsearch index by its bulk API, or writes the same requests into files.

    dense     dense_vector; in a collection with windows one for each, nested: windows.dense
    sparse    sparse_vector, token ids as its features; Elasticsearch keeps about three digits of a weight
    colbert   rank_vectors, which is scored and never searched
    metadata  an object, of which declared fields are indexed

The index's `_meta` has the collection's description.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from tercet.index.catalog.settings import CollectionSettings
from tercet.transfer.description import KEY
from tercet.transfer.errors import TransferError
from tercet.transfer.folders import abandon_folder, begin_folder
from tercet.transfer.push import exists, left_over, require_same
from tercet.transfer.queries import CANDIDATES, HITS, CollectionQuery, one_line
from tercet.transfer.records import DocumentLimits, StoredDocuments
from tercet.transfer.rest import ATTEMPTS, BUSY, RestServer, pause

REQUEST_BYTES = 8 * 2**20  # of a bulk request
FILE_BYTES = 64 * 2**20
NDJSON = "application/x-ndjson"
MARKER = "index.json"  # the mapping, of which a folder of an export is known
FIELD_TYPES = {
    "keyword": "keyword",
    "integer": "long",
    "number": "double",
    "boolean": "boolean",
    "datetime": "date",
}
_JSON = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS


def mapping_of(settings: CollectionSettings, description: dict[str, Any]) -> dict[str, Any]:
    """The body that creates the index."""
    dense = {
        "type": "dense_vector",
        "dims": settings.dense_dimension,
        "index": True,
        "similarity": "max_inner_product",
        "index_options": {"type": "hnsw"},
    }
    properties: dict[str, Any] = {
        "title": {"type": "text"},
        "text": {"type": "text"},
        "metadata": {
            "type": "object",
            "dynamic": False,
            "properties": {name: {"type": FIELD_TYPES[kind]} for name, kind in settings.fields.items()},
        },
        "sparse": {"type": "sparse_vector", "index_options": {"prune": False}},
    }
    if settings.window is None:
        properties["dense"] = dense
    else:
        offsets = {"start": {"type": "integer"}, "end": {"type": "integer"}}
        properties["windows"] = {"type": "nested", "properties": {**offsets, "dense": dense}}
    if settings.stores_token_vectors:
        properties["colbert"] = {"type": "rank_vectors", "dims": settings.colbert_dimension}
    return {"mappings": {"_meta": {KEY: description}, "dynamic": False, "properties": properties}}


def bulk_lines(documents: StoredDocuments, *, colbert: bool) -> Iterator[bytes]:
    """For each document the two lines of a bulk request that put it under its id."""
    for row, document in enumerate(documents.documents):
        fields: dict[str, Any] = {
            "title": document.title,
            "text": document.text,
            "metadata": dict(document.metadata),
            "sparse": documents.terms(row),
        }
        texts = documents.encodings(row)
        if documents.windows is None:
            fields["dense"] = documents.dense[row]
        else:
            spans = documents.windows.spans[texts.start : texts.stop].tolist()
            fields["windows"] = [
                {"start": start, "end": end, "dense": documents.dense[text]}
                for (start, end), text in zip(spans, texts, strict=True)
            ]
        tokens = documents.token_vectors(row)
        if colbert and tokens is not None and len(tokens):
            fields["colbert"] = tokens
        action = orjson.dumps({"index": {"_id": document.id}})
        yield action + b"\n" + orjson.dumps(fields, option=_JSON) + b"\n"


def search_body(query: CollectionQuery, *, windows: bool) -> dict[str, Any]:
    """The body of a search: candidates of two sides, whose best are scored by all three.

    A score of Elasticsearch may not be below 0, so dense and token scores are added with 1 more each:
    `_score` is the sum of our three and the weights of these two.
    """
    dense_field = "windows.dense" if windows else "dense"
    knn: dict[str, Any] = {
        "knn": {
            "field": dense_field,
            "query_vector": query.dense,
            "k": CANDIDATES,
            "num_candidates": 2 * CANDIDATES,
        }
    }
    dense = _scripted(
        f"params.weight * (dotProduct(params.query, '{dense_field}') + 1)", query.sides.dense, query.dense
    )
    if windows:
        knn, dense = (
            {"nested": {"path": "windows", "score_mode": "max", "query": query_part}}
            for query_part in (knn, dense)
        )
    proposing, scoring = [knn], [dense]
    if query.terms and query.sides.sparse:
        lexical = {"field": "sparse", "query_vector": query.terms, "prune": False}
        proposing.append({"sparse_vector": lexical})
        scoring.append({"sparse_vector": {**lexical, "boost": query.sides.sparse}})
    if query.colbert is not None and len(query.colbert):
        late = f"params.weight * (maxSimDotProduct(params.query, 'colbert') / {len(query.colbert)} + 1)"
        scoring.append(_scripted(late, query.sides.colbert, query.colbert))
    return {
        "size": HITS,
        "_source": ["title", "text", "metadata"],
        "query": {"bool": {"should": proposing}},
        "rescore": {
            "window_size": CANDIDATES * len(proposing),
            "query": {
                "rescore_query": {"bool": {"should": scoring}},
                "query_weight": 0.0,
                "rescore_query_weight": 1.0,
            },
        },
    }


def _scripted(source: str, weight: float, query: Any) -> dict[str, Any]:
    script = {"source": source, "params": {"weight": weight, "query": query}}
    return {"script_score": {"query": {"match_all": {}}, "script": script}}


class ElasticsearchTarget:
    """An index of a server, or a folder with the requests that make one."""

    limits = DocumentLimits()

    def __init__(
        self,
        index: str,
        settings: CollectionSettings,
        batch: int,
        *,
        server: RestServer | None = None,
        folder: Path | None = None,
    ) -> None:
        """server or folder: one of them. settings: the codec is none where token vectors are left out."""
        self._index = index
        self._settings = settings
        self._server = server
        self._folder = folder
        self._written = 0
        self.batch = (batch, 16_384)
        self.name = f"Elasticsearch index {index!r}" if server is not None else str(folder)
        self.remarks = ["Elasticsearch keeps about three digits of lexical weights"]
        if settings.window is not None and settings.stores_token_vectors:
            self.remarks.append(
                "late interaction goes over all windows of a document together, and not over the best one: "
                "its scores are at least ours"
            )

    def begin(self, description: dict[str, Any], *, overwrite: bool, resume: bool) -> None:
        """Raises TargetExistsError or TransferError."""
        body = mapping_of(self._settings, description)
        if self._server is None:
            begin_folder(self._folder, MARKER, overwrite=overwrite, resume=resume)
            if self._folder is not None:
                (self._folder / MARKER).write_bytes(orjson.dumps(body, option=orjson.OPT_INDENT_2) + b"\n")
            return
        path = f"/{self._index}"
        if self._server.ask("HEAD", path, allowed=(404,)).is_success:
            if resume:
                indexes = self._server.ask("GET", f"{path}/_mapping").json()
                mappings: list[dict[str, Any]] = [index.get("mappings", {}) for index in indexes.values()]
                meta = mappings[0].get("_meta", {}) if mappings else {}
                require_same(description, meta.get(KEY), self.name)
                return
            if not overwrite:
                raise exists(self.name)
            self._server.ask("DELETE", path)
        self._server.ask("PUT", path, orjson.dumps(body))

    def write(self, documents: StoredDocuments) -> None:
        """Puts documents; those with the same ids are replaced."""
        lines: list[bytes] = []
        size = 0
        for line in bulk_lines(documents, colbert=self._settings.stores_token_vectors):
            if lines and size + len(line) > REQUEST_BYTES:
                self._send(lines)
                lines, size = [], 0
            lines.append(line)
            size += len(line)
        self._send(lines)

    def finish(self) -> None:
        """Lets searches see all of it."""
        if self._server is not None:
            self._server.ask("POST", f"/{self._index}/_refresh")

    def close(self) -> None:
        """Lets go of connections."""
        if self._server is not None:
            self._server.close()

    def abandon(self, written: int) -> str:
        """Removes files; of an index says what is in it."""
        if self._server is None:
            return abandon_folder(self._folder)
        return left_over(self.name, written)

    def query(self, query: CollectionQuery) -> str:
        """A request that `curl` sends, or Kibana's console but for its first and last lines."""
        body = orjson.dumps(
            search_body(query, windows=self._settings.window is not None), option=_JSON
        ).decode()
        url = (
            "http://127.0.0.1:9200" if self._server is None else str(self._server.client.base_url).rstrip("/")
        )
        key = ""
        if self._server is not None and "Authorization" in self._server.client.headers:
            key = ' -H "Authorization: ApiKey $ELASTICSEARCH_API_KEY"'
        offset = query.sides.dense + (query.sides.colbert if query.colbert is not None else 0.0)
        return (
            f"# {one_line(query.text)}\n# _score is the sum of the three scores and {offset:g}\n"
            f"curl -s '{url}/{self._index}/_search'{key} -H 'Content-Type: application/json' "
            f"--data-binary @- <<'EOF'\n{body}\nEOF\n"
        )

    def _send(self, lines: list[bytes]) -> None:
        if not lines:
            return
        if self._server is None:
            self._append(b"".join(lines))
            return
        for attempt in range(ATTEMPTS):
            answer = self._server.ask("POST", f"/{self._index}/_bulk", b"".join(lines), kind=NDJSON).json()
            if not answer.get("errors"):
                return
            outcomes = [next(iter(item.values())) for item in answer["items"]]
            refused = [
                outcome for outcome in outcomes if outcome["status"] >= 300 and outcome["status"] not in BUSY
            ]
            if refused:
                reason = refused[0].get("error", {})
                raise TransferError(
                    f"{self.name} refused document {refused[0].get('_id')!r:.80}: "
                    f"{reason.get('reason', reason) if isinstance(reason, dict) else reason}"
                )
            lines = [line for line, outcome in zip(lines, outcomes, strict=True) if outcome["status"] in BUSY]
            time.sleep(pause(attempt, None))
        raise TransferError(f"{self.name} is too busy for {len(lines)} documents; try again later")

    def _append(self, content: bytes) -> None:
        if self._folder is None:
            return
        number = self._written // FILE_BYTES + 1
        with (self._folder / f"bulk-{number:05d}.ndjson").open("ab") as file:
            file.write(content)
        self._written += len(content)
