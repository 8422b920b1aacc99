"""Pushes documents into a Milvus collection: of a server, or of Milvus Lite in a file.

Dense and lexical vectors are searched by their inner product. Milvus Lite has no field for several vectors of
a document, so token vectors are an array of strings, each the base64 of a vector's little-endian float32
values. The query fetches them with the candidates, and adds up the three scores itself.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import orjson
from pymilvus import DataType, MilvusClient
from pymilvus.exceptions import MilvusException

from index.catalog.settings import CollectionSettings
from transfer.description import KEY
from transfer.errors import TransferError
from transfer.push import exists, left_over, require_same
from transfer.queries import CANDIDATES, HITS, CollectionQuery, numbers, one_line
from transfer.records import DocumentLimits, StoredDocuments

STRING_BYTES = 65_535  # of a string in Milvus; JSON may have one more
ID_BYTES = 512
ARRAY_ITEMS = 4096
REQUEST_TOKENS = 16_384


@dataclass(frozen=True, slots=True)
class MilvusPlace:
    """uri: of a server, or a file of Milvus Lite, which ends in .db; token: of a server."""

    uri: str
    token: str | None = None

    @property
    def code(self) -> str:
        """Python that opens it; the token comes from the environment."""
        token = ', token=os.environ["MILVUS_TOKEN"]' if self.token else ""
        return f"MilvusClient({self.uri!r}{token})"


class MilvusTarget:
    """A collection in Milvus."""

    def __init__(self, place: MilvusPlace, collection: str, settings: CollectionSettings, batch: int) -> None:
        """settings: of the exported collection; its codec is none where token vectors are left out.

        Raises TransferError for a collection with windows.
        """
        if settings.window is not None:
            raise TransferError(
                f"collection {settings.name!r} has windows, and Milvus one dense vector for a document: "
                "export to parquet, qdrant, elasticsearch or vespa"
            )
        self._place = place
        self._collection = collection
        self._settings = settings
        self._client: MilvusClient | None = None
        self.name = f"Milvus collection {collection!r}"
        self.limits = DocumentLimits(STRING_BYTES, ARRAY_ITEMS if settings.stores_token_vectors else None)
        self.batch = (batch, REQUEST_TOKENS)
        self.remarks: list[str] = []
        if settings.stores_token_vectors:
            self.remarks.append(
                "token vectors are stored, not searched: the query fetches those of its candidates"
            )

    def begin(self, description: dict[str, Any], *, overwrite: bool, resume: bool) -> None:
        """Raises TargetExistsError or TransferError."""
        logging.getLogger("pymilvus").setLevel(logging.CRITICAL)  # it logs what it raises
        with _milvus_errors(self.name):
            self._client = MilvusClient(
                self._place.uri,
                token=self._place.token or "",
                grpc_options={"grpc.enable_http_proxy": 0},  # it would be sent the token
            )
        self._make(self._client, description, overwrite=overwrite, resume=resume)

    def write(self, documents: StoredDocuments) -> None:
        """Puts rows; those of the same documents are replaced."""
        with _milvus_errors(self.name):
            self._opened().upsert(self._collection, list(self._rows(documents)))

    def finish(self) -> None:
        """Writes what is in memory."""
        with _milvus_errors(self.name):
            self._opened().flush(self._collection)

    def close(self) -> None:
        """Lets go of the client."""
        if self._client is not None:
            self._client.close()

    def abandon(self, written: int) -> str:
        """Says what is there."""
        return left_over(self.name, written)

    def query(self, query: CollectionQuery) -> str:
        """A script that asks twice for candidates and sums up their scores."""
        fields = ["title", "dense", "sparse", *(["colbert"] if query.colbert is not None else [])]
        return _SCRIPT.format(
            text=one_line(query.text),
            imports="import os\n" if "os.environ" in self._place.code else "",
            client=self._place.code,
            collection=self._collection,
            fields=fields,
            candidates=CANDIDATES,
            hits=HITS,
            dense=numbers(query.dense),
            terms=f"{{{', '.join(f'{term}: {weight!r}' for term, weight in query.terms.items())}}}",
            colbert=numbers(query.colbert) if query.colbert is not None else "[]",
            sides=[query.sides.dense, query.sides.sparse, query.sides.colbert],
        )

    @property
    def _remote(self) -> bool:
        return "://" in self._place.uri

    def _make(
        self, client: MilvusClient, description: dict[str, Any], *, overwrite: bool, resume: bool
    ) -> None:
        with _milvus_errors(self.name):
            if client.has_collection(self._collection):
                if resume:
                    require_same(description, self._described(client), self.name)
                    return
                if not overwrite:
                    raise exists(self.name)
                client.drop_collection(self._collection)
            written = orjson.dumps(description).decode()
            schema = self._schema(client, written if self._remote else "")
            indexes = client.prepare_index_params()
            indexes.add_index("dense", index_type="AUTOINDEX" if self._remote else "FLAT", metric_type="IP")
            indexes.add_index("sparse", index_type="SPARSE_INVERTED_INDEX", metric_type="IP")
            client.create_collection(
                self._collection,
                schema=schema,
                index_params=indexes,
                properties=None if self._remote else {KEY: written},  # Lite keeps no description
            )

    def _described(self, client: MilvusClient) -> Any:
        """What was said of the collection when it was made; None where it was nothing of ours."""
        found = client.describe_collection(self._collection)
        written = found.get("description") if self._remote else found.get("properties", {}).get(KEY)
        try:
            return orjson.loads(written or "")
        except orjson.JSONDecodeError:
            return None

    def _schema(self, client: MilvusClient, description: str) -> Any:
        schema = client.create_schema(auto_id=False, description=description)
        schema.add_field("id", DataType.VARCHAR, is_primary=True, max_length=ID_BYTES)
        schema.add_field("title", DataType.VARCHAR, max_length=STRING_BYTES, nullable=True)
        schema.add_field("text", DataType.VARCHAR, max_length=STRING_BYTES)
        schema.add_field("metadata", DataType.JSON)
        schema.add_field("dense", DataType.FLOAT_VECTOR, dim=self._settings.dense_dimension)
        schema.add_field("sparse", DataType.SPARSE_FLOAT_VECTOR)
        if self._settings.stores_token_vectors:
            schema.add_field(
                "colbert",
                DataType.ARRAY,
                element_type=DataType.VARCHAR,
                max_capacity=ARRAY_ITEMS,
                max_length=4 * (-(-4 * self._settings.colbert_dimension // 3)),
            )
        return schema

    def _rows(self, documents: StoredDocuments) -> Iterator[dict[str, Any]]:
        for row, document in enumerate(documents.documents):
            ids, weights = documents.lexical.row(row)
            found: dict[str, Any] = {
                "id": document.id,
                "title": document.title,
                "text": document.text,
                "metadata": dict(document.metadata),
                "dense": documents.dense[row],
                "sparse": dict(zip(ids.tolist(), weights.tolist(), strict=True)),
            }
            tokens = documents.token_vectors(row)
            if tokens is not None and self._settings.stores_token_vectors:
                found["colbert"] = [base64.b64encode(vector).decode() for vector in tokens.astype("<f4")]
            yield found

    def _opened(self) -> MilvusClient:
        if self._client is None:
            raise TransferError(f"{self.name} was not begun")
        return self._client


_SCRIPT = """# {text}
import base64
{imports}
import numpy as np
from pymilvus import MilvusClient

client = {client}
dense = np.array({dense}, np.float32)
terms = {terms}  # lexical weights, times the collection's idf where it has one
colbert = np.array({colbert}, np.float32)
weights = np.array({sides})
fields = {fields}
client.load_collection({collection!r})
found = {{}}
for query, side in ((dense, "dense"), (terms, "sparse")):
    if len(query):
        (answer,) = client.search(
            {collection!r}, [query], anns_field=side, limit={candidates}, output_fields=fields
        )
        found |= {{hit["id"]: hit["entity"] for hit in answer}}
hits = []
for identifier, hit in found.items():
    late = 0.0
    if len(colbert) and hit["colbert"]:
        vectors = np.stack([np.frombuffer(base64.b64decode(vector), "<f4") for vector in hit["colbert"]])
        late = (colbert @ vectors.T).max(1).mean()
    lexical = sum(terms.get(term, 0.0) * weight for term, weight in hit["sparse"].items())
    score = float(weights @ [dense @ np.array(hit["dense"], np.float32), lexical, late])
    hits.append((score, identifier, hit["title"]))
for score, identifier, title in sorted(hits, key=lambda hit: (-hit[0], hit[1]))[:{hits}]:
    print(round(score, 6), identifier, title)
"""


@contextmanager
def _milvus_errors(name: str) -> Iterator[None]:
    try:
        yield
    except (MilvusException, OSError, ValueError) as error:
        message = getattr(error, "message", "") or str(error)
        raise TransferError(f"{name} refused or does not answer: {message}") from error
