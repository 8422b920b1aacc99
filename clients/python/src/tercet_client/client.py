"""The synchronous client, made of the asynchronous one by `clients/python/make_sync.py`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, Unpack, cast

import httpx

from tercet_client.collection import Collection, agreeing
from tercet_client.documents import PAGE, Documents
from tercet_client.embeddings import MEDIA_TYPE, Dtype, Embeddings
from tercet_client.errors import ConflictError, NotFoundError
from tercet_client.parts import page_of, path_of
from tercet_client.searching import Preset, Query, SearchKeywords
from tercet_client.types import (
    AliasResponse,
    BackupResponse,
    CollectionRequest,
    CollectionResponse,
    InfoResponse,
    JobResponse,
    MergeResponse,
    ReadingRequest,
    RerankResponse,
    RerankWeightsRequest,
    SearchAfter,
    SearchManyResponse,
    SearchResponse,
    StatisticsResponse,
    UsedDefaults,
)

POLL_SECONDS = 0.5
ENDED = ("succeeded", "failed", "cancelled")

Output = Literal["dense", "sparse", "colbert"]


class Client(Documents):
    """A Tercet server. Use as a context manager, or call `close`. Safe for many threads at once.

    Busy servers (429, 503) are asked again after the time that they name, and so is one that cannot be
    reached, where a repeat does no harm: writes bear an idempotency key for that. Methods raise ApiError with
    the server's message, and ConnectionFailedError.
    """

    def embed(
        self,
        inputs: str | Sequence[str],
        *,
        input_type: Literal["document", "query"] = "document",
        outputs: Sequence[Output] | None = None,
        truncate: bool = True,
        max_length: int | None = None,
        dimensions: int | None = None,
        model: str | None = None,
        adapter: str | None = None,
        dtype: Dtype = "float32",
        colbert_pool: int = 1,
    ) -> Embeddings:
        """Dense vectors, lexical weights and token vectors of texts, as NumPy arrays.

        dtype: of dense and token vectors; `Embeddings.decoded` turns them back to float32. colbert_pool: how
        many tokens share one token vector.
        """
        body = {
            "inputs": inputs if isinstance(inputs, str) else list(inputs),
            "input_type": input_type,
            "outputs": None if outputs is None else list(outputs),
            "truncate": truncate,
            "max_length": max_length,
            "dimensions": dimensions,
            "model": model,
            "adapter": adapter,
            "dtype": dtype,
            "colbert_pool": colbert_pool,
        }
        answer = self._send("POST", "/embed", json=body, headers={"Accept": MEDIA_TYPE})
        return Embeddings.of(answer.content)

    def search(
        self,
        collection: str,
        query: Query,
        *,
        search_after: SearchAfter | None = None,
        **options: Unpack[SearchKeywords],
    ) -> SearchResponse:
        """The best documents of a collection, each with its scores.

        query: a text, ready representations, `{"id": …}` of a stored document that others shall be like, or
        `{"like": […], "unlike": […]}` of several.
        search_after: the score and id of the last hit that is known; the hits are those behind it.
        """
        after = {} if search_after is None else {"search_after": search_after}
        body = {"collection": collection, "query": query, **after, **options}
        return cast(SearchResponse, self._json("POST", "/search", body))

    def search_many(
        self, collection: str, queries: Sequence[Query], **options: Unpack[SearchKeywords]
    ) -> SearchManyResponse:
        """The best documents for each of several queries, in one request."""
        body = {"collection": collection, "queries": list(queries), **options}
        return cast(SearchManyResponse, self._json("POST", "/search", body))

    def rerank(
        self,
        query: str,
        inputs: Sequence[str],
        *,
        top_k: int | None = None,
        collection: str | None = None,
        weights: RerankWeightsRequest | Preset | None = None,
        model: str | None = None,
        adapter: str | None = None,
    ) -> RerankResponse:
        """Texts by their three-way score with a query."""
        body = {
            "query": query,
            "inputs": list(inputs),
            "top_k": top_k,
            "collection": collection,
            "weights": weights,
            "model": model,
            "adapter": adapter,
        }
        return cast(RerankResponse, self._json("POST", "/rerank", body))

    def collections(
        self, *, limit: int | None = None, after: str | None = None
    ) -> list[CollectionResponse]:
        """All collections in order of name, or at most `limit` of them behind the one called `after`."""
        found = self._json("GET", "/collections", params=page_of(limit, after))
        return cast(list[CollectionResponse], found["collections"])

    def iter_collections(self, *, page: int = PAGE) -> Iterator[CollectionResponse]:
        """All collections in order of name, fetched page by page."""
        return self._pages("/collections", "collections", page)

    def collection(
        self,
        name: str,
        *,
        create: bool = False,
        fields: Mapping[str, str] | None = None,
        **settings: Any,
    ) -> Collection:
        """One of them, by its name or an alias, with methods for its documents.

        create: make it where it is missing, else that raises NotFoundError. fields: metadata fields by name
        and type. settings: others of `CollectionRequest`. Raises ConflictError where it exists with others.
        """
        wanted = settings if fields is None else {"fields": dict(fields), **settings}
        path = path_of("collections", name)
        try:
            found = self._json("GET", path)
        except NotFoundError:
            if not create:
                raise
            try:
                found = self.create_collection(name, cast(CollectionRequest, wanted))
            except ConflictError:  # made by somebody else meanwhile
                found = self._json("GET", path)
        agreeing(found, wanted)
        return Collection(self, name, found)

    def create_collection(
        self, name: str, settings: CollectionRequest | None = None
    ) -> CollectionResponse:
        """Makes an empty collection. Raises ConflictError where it exists."""
        path = path_of("collections", name)
        return cast(CollectionResponse, self._json("PUT", path, settings or {}, again=False))

    def declare_fields(self, name: str, fields: Mapping[str, str]) -> CollectionResponse:
        """Declares more metadata fields over what a collection holds."""
        path = path_of("collections", name, "fields")
        return cast(CollectionResponse, self._json("POST", path, {"fields": dict(fields)}))

    def defaults(self, name: str) -> UsedDefaults:
        """The weights and candidates of searches that give none, stored or usual."""
        return cast(UsedDefaults, self._json("GET", path_of("collections", name, "defaults")))

    def store_defaults(
        self, name: str, weights: Mapping[str, float] | str, candidates: Mapping[str, int] | None = None
    ) -> CollectionResponse:
        """Stores what searches use where they give no weights or candidates. weights: or a preset's name."""
        body = {"weights": weights, "candidates": candidates}
        return cast(
            CollectionResponse, self._json("PUT", path_of("collections", name, "defaults"), body)
        )

    def remove_defaults(self, name: str) -> CollectionResponse:
        """Has searches use the usual weights and candidates again."""
        return cast(CollectionResponse, self._json("DELETE", path_of("collections", name, "defaults")))

    def delete_collection(self, name: str) -> None:
        """Deletes a collection."""
        self._send("DELETE", path_of("collections", name), again=False)

    def statistics(self, name: str) -> StatisticsResponse:
        """What a collection holds: documents, segments, bytes, unpublished writes."""
        return cast(StatisticsResponse, self._json("GET", path_of("collections", name, "stats")))

    def merge(self, name: str) -> MergeResponse:
        """Publishes what was written and joins segments, in the background."""
        return cast(MergeResponse, self._json("POST", path_of("collections", name, "merge"), {}))

    def aliases(self, *, limit: int | None = None, after: str | None = None) -> list[AliasResponse]:
        """All aliases in order of name, or at most `limit` of them behind the one called `after`."""
        found = self._json("GET", "/aliases", params=page_of(limit, after))
        return cast(list[AliasResponse], found["aliases"])

    def iter_aliases(self, *, page: int = PAGE) -> Iterator[AliasResponse]:
        """All aliases in order of name, fetched page by page."""
        return self._pages("/aliases", "aliases", page)

    def alias(self, name: str) -> AliasResponse:
        """What an alias means."""
        return cast(AliasResponse, self._json("GET", path_of("aliases", name)))

    def put_alias(self, name: str, collection: str | Sequence[str]) -> AliasResponse:
        """Makes an alias, or switches it in one step; of several collections, which are searched as one."""
        one = isinstance(collection, str)
        body = {"collection": collection} if one else {"collections": list(collection)}
        return cast(AliasResponse, self._json("PUT", path_of("aliases", name), body))

    def delete_alias(self, name: str) -> None:
        """Removes an alias."""
        self._send("DELETE", path_of("aliases", name), again=False)

    def create_backup(self, collection: str) -> BackupResponse:
        """Copies a collection as it is now."""
        path = path_of("collections", collection, "backups")
        return cast(BackupResponse, self._json("POST", path, again=False))

    def backups(
        self, collection: str, *, limit: int | None = None, after: str | None = None
    ) -> list[BackupResponse]:
        """The backups of a collection, the newest first, or at most `limit` of them behind the id `after`."""
        path = path_of("collections", collection, "backups")
        found = self._json("GET", path, params=page_of(limit, after))
        return cast(list[BackupResponse], found["backups"])

    def iter_backups(self, collection: str, *, page: int = PAGE) -> Iterator[BackupResponse]:
        """The backups of a collection, the newest first, fetched page by page."""
        return self._pages(path_of("collections", collection, "backups"), "backups", page)

    def restore_backup(
        self, collection: str, backup: str, *, name: str | None = None
    ) -> CollectionResponse:
        """Restores a backup in place, or as the new collection `name`."""
        path = path_of("collections", collection, "backups", backup, "restore")
        body = {} if name is None else {"name": name}
        return cast(CollectionResponse, self._json("POST", path, body, again=False))

    def delete_backup(self, collection: str, backup: str) -> None:
        """Removes a backup."""
        self._send("DELETE", path_of("collections", collection, "backups", backup), again=False)

    def start_job(
        self,
        collection: str,
        source: str | list[str],
        *,
        mode: Literal["replace", "upsert"] = "replace",
        on_error: Literal["stop", "skip"] = "stop",
        model: str | None = None,
        adapter: str | None = None,
        reading: ReadingRequest | None = None,
        engine: Literal["local", "ray"] | None = None,
    ) -> JobResponse:
        """Builds a collection from files and folders below the server's data root, in the background.

        reading: which columns hold what, where they have not their usual names. engine: what encodes: by
        default a process of the server's machine, or the workers of its Ray cluster.
        """
        body = {
            "reading": reading,
            "source": source,
            "mode": mode,
            "on_error": on_error,
            "model": model,
            "adapter": adapter,
            "engine": engine,
        }
        path = path_of("collections", collection, "jobs")
        return cast(JobResponse, self._json("POST", path, body, again=False))

    def jobs(self, *, limit: int | None = None, after: str | None = None) -> list[JobResponse]:
        """All jobs, the newest first, or at most `limit` of them behind the id `after`."""
        found = self._json("GET", "/jobs", params=page_of(limit, after))
        return cast(list[JobResponse], found["jobs"])

    def iter_jobs(self, *, page: int = PAGE) -> Iterator[JobResponse]:
        """All jobs, the newest first, fetched page by page."""
        return self._pages("/jobs", "jobs", page)

    def job(self, id: str) -> JobResponse:
        """One job."""
        return cast(JobResponse, self._json("GET", path_of("jobs", id)))

    def wait_for_job(self, id: str, *, poll_seconds: float = POLL_SECONDS) -> JobResponse:
        """The job once it has ended: succeeded, failed or cancelled."""
        while True:
            found = self.job(id)
            if found["state"] in ENDED:
                return found
            time.sleep(poll_seconds)

    def cancel_job(self, id: str) -> JobResponse:
        """Cancels a job."""
        return cast(JobResponse, self._json("DELETE", path_of("jobs", id)))

    def info(self) -> InfoResponse:
        """The server's version, encoder and limits."""
        return cast(InfoResponse, self._json("GET", "/info"))

    def healthy(self) -> bool:
        """Whether the process answers."""
        return self._says_yes("/health")

    def ready(self) -> bool:
        """Whether the server can encode and search now."""
        return self._says_yes("/ready")

    def metrics(self) -> str:
        """Counters and timers in Prometheus' text format."""
        return (self._send("GET", "/metrics")).text

    def _says_yes(self, path: str) -> bool:
        try:
            return (self._http.get(path)).is_success
        except httpx.HTTPError:
            return False
