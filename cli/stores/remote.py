"""A running server, asked over HTTP by commands that are given `--url`, with the methods of a client."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import quote

import typer

from tercet.index.errors import CollectionBusyError
from tercet.index.wording import reason_of
from tercet.service.exceptions import ServiceError

if TYPE_CHECKING:
    import httpx

    from tercet.ingest.sources.checks import Skipped
    from tercet.ingest.sources.files import Source
    from tercet.ingest.sources.reading import Reading
    from tercet.service.settings.settings import Settings

Answer = dict[str, Any]
Url = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Ask a running server, such as http://127.0.0.1:8080, instead of opening the data root. Its key "
        "is taken from TERCET_CLIENT_KEY or TERCET_CLIENT_KEY_FILE.",
        show_default=False,
    ),
]
ATTEMPTS = 8  # of a request that a server is too busy for
TIMEOUT_SECONDS = 600.0
UNAUTHENTICATED, BUSY, NOT_READY = 401, 429, 503
KEY_REMEDY = "set TERCET_CLIENT_KEY, or TERCET_CLIENT_KEY_FILE to a file that holds one"
PAGE = 100  # documents that are listed or deleted at a time
POLL_SECONDS = 0.2  # between two looks whether a merge is done


class RemoteError(ServiceError):
    """A server cannot be reached, or refused. status: of its answer, None where there is none."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class UnreachableError(RemoteError):
    """A server does not answer."""


@dataclass(frozen=True, slots=True)
class PutReport:
    """What was put from a source. position: of the last write, None where a build wrote it."""

    documents: int
    skips: Sequence[Skipped]
    skipped: int
    position: int | str | None = None


class Remote:
    """One server; used as a context manager.

    Methods are named as those of `tercet_client.Client`, take the same arguments and answer the same. They
    raise RemoteError with the server's message.
    """

    def __init__(self, url: str, settings: Settings, *, reads: bool = False) -> None:
        """reads: prefers a read-only key. Raises RemoteError for what is no URL of a server."""
        import httpx

        self._key = _key_of(settings, reads=reads)
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        self._url = self.location = url.rstrip("/")
        wrong = RemoteError(f"--url is {url!r}; give one such as http://127.0.0.1:8080")
        if not self._url.startswith(("http://", "https://")):
            raise wrong
        try:
            # Without the environment: its proxy would be sent the key, in the clear where the URL is http.
            self._client = httpx.Client(
                base_url=self._url, headers=headers, timeout=TIMEOUT_SECONDS, trust_env=False
            )
        except httpx.InvalidURL as error:
            raise wrong from error

    def __enter__(self) -> Remote:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def collections(self) -> list[Answer]:
        """Settings and state of all collections, in order of name."""
        return list(self.ask("GET", "/collections")["collections"])

    def describe(self, name: str) -> Answer:
        """Settings and state of a collection."""
        return dict(self.ask("GET", path_of(name)))

    def delete_collection(self, name: str) -> None:
        """Deletes a collection with all it holds."""
        self.ask("DELETE", path_of(name))

    def declare_fields(self, name: str, fields: Mapping[str, str]) -> Answer:
        """Declares metadata fields over what a collection holds."""
        return dict(self.ask("POST", path_of(name, "fields"), json={"fields": fields}))

    def statistics(self, name: str) -> Answer:
        """What a collection holds: documents, segments, bytes, unpublished writes."""
        return dict(self.ask("GET", path_of(name, "stats")))

    def merge(self, name: str) -> Answer:
        """Publishes what was written, joins segments, and gives the statistics after that."""
        self.ask("POST", path_of(name, "merge"))
        while True:
            statistics = self.statistics(name)
            if not (statistics["flushing"] or statistics["merging"]):
                return statistics
            time.sleep(POLL_SECONDS)

    def publish(self, name: str) -> None:
        """Publishes what was written."""
        self.merge(name)

    def put_documents(self, collection: str, documents: Sequence[Mapping[str, Any]]) -> Answer:
        """Adds or replaces documents, all of them or none."""
        body = {"documents": documents, **_key()}
        return dict(self.ask("PUT", path_of(collection, "documents"), json=body))

    def put_source(
        self, collection: str, source: Source, reading: Reading, on_error: Literal["stop", "skip"]
    ) -> PutReport:
        """Adds or replaces the documents of a source, in batches; passages replace the former ones of their
        documents, which go once all are there.
        """
        from tercet.cli.batches import batches
        from tercet.cli.encoders import tokenizer_of
        from tercet.cli.progress import count_progress
        from tercet.ingest.passages.former import NewPassages
        from tercet.ingest.sources.reader import DocumentReader

        with count_progress("put", "documents") as report:
            described = self.describe(collection)
            measure = tokenizer_of(described["model"]) if reading.split else None
            reader = DocumentReader(
                source,
                on_error=on_error,
                fields=described["fields"],
                reading=reading,
                partitioned=described.get("partitioned", False),
                tokenizer=measure,
            )
            done, position, passages = 0, None, NewPassages()
            for batch in batches(reader):
                position = self.put_documents(collection, batch)["position"]
                for document in batch if reading.split else ():
                    passages.add(document["id"], document["metadata"])
                done += len(batch)
                report(done, reader.total or done)
            if not done:
                raise reader.no_documents()
            former = passages.former(partial(self._page, collection))
            for start in range(0, len(former), PAGE):
                position = self.delete_documents(collection, ids=former[start : start + PAGE])["position"]
        return PutReport(done, reader.skips, reader.skipped, position)

    def document(self, collection: str, id: str) -> Answer:
        """A stored document."""
        return dict(self.ask("GET", path_of(collection, "documents", id)))

    def documents(
        self,
        collection: str,
        *,
        filter: Mapping[str, Any] | None = None,
        order_by: str | None = None,
        descending: bool = False,
        after: str | None = None,
        limit: int | None = None,
    ) -> Iterator[Answer]:
        """Documents in order of id, behind the one called `after`, or in order of a declared field."""
        params = {
            "after": after,
            "filter": None if filter is None else json.dumps(filter),
            "order_by": order_by,
            "order": None if order_by is None else ("desc" if descending else "asc"),
        }
        query: dict[str, str | int] = {key: value for key, value in params.items() if value is not None}
        left = limit
        while left is None or left > 0:
            if left is not None:
                query["limit"] = min(left, PAGE)
            page = self.ask("GET", path_of(collection, "documents"), params=query)
            yield from page["documents"]
            if page["next"] is None:
                return
            query["after"] = page["next"]
            left = None if left is None else left - len(page["documents"])

    def _page(self, collection: str, after: str, limit: int) -> list[tuple[str, Mapping[str, Any]]]:
        """Ids and metadata of the documents behind an id."""
        page = self.documents(collection, after=after, limit=limit)
        return [(document["id"], document["metadata"]) for document in page]

    def patch_document(self, collection: str, id: str, metadata: Mapping[str, Any]) -> Answer:
        """Replaces a document's metadata."""
        body = {"metadata": metadata, **_key()}
        return dict(self.ask("PATCH", path_of(collection, "documents", id), json=body))

    def count_documents(self, collection: str, filter: Mapping[str, Any] | None = None) -> int:
        """How many documents there are, or how many a filter allows."""
        path = path_of(collection, "documents", "count")
        return int(self.ask("POST", path, json={"filter": filter})["count"])

    def get_documents(self, collection: str, ids: Sequence[str]) -> Answer:
        """Several documents by their ids, and the ids that are not there."""
        return dict(self.ask("POST", path_of(collection, "documents", "get"), json={"ids": ids}))

    def update_documents(
        self,
        collection: str,
        metadata: Mapping[str, Any],
        *,
        ids: Sequence[str] | None = None,
        filter: Mapping[str, Any] | None = None,
        merge: bool = False,
    ) -> Answer:
        """Changes the metadata of documents, by ids or by a filter."""
        body = {"metadata": metadata, "merge": merge, "ids": ids, "filter": filter, **_key()}
        return dict(self.ask("POST", path_of(collection, "documents", "update"), json=body))

    def delete_documents(
        self,
        collection: str,
        *,
        ids: Sequence[str] | None = None,
        filter: Mapping[str, Any] | None = None,
    ) -> Answer:
        """Deletes documents by ids or by a filter."""
        body = {"ids": ids, "filter": filter, **_key()}
        return dict(self.ask("POST", path_of(collection, "documents", "delete"), json=body))

    def search(self, collection: str, query: Any, **options: Any) -> Answer:
        """The best documents of a collection, each with its scores. options: those of `POST /search`."""
        return dict(self.ask("POST", "/search", json={"collection": collection, "query": query, **options}))

    def create_backup(self, collection: str) -> Answer:
        """Copies a collection as it is now."""
        return dict(self.ask("POST", path_of(collection, "backups")))

    def backups(self, collection: str) -> list[Answer]:
        """The backups of a collection, the newest first."""
        return list(self.ask("GET", path_of(collection, "backups"))["backups"])

    def restore_backup(self, collection: str, backup: str, *, name: str | None = None) -> Answer:
        """Restores a backup in place, or as the new collection `name`."""
        path = path_of(collection, "backups", backup, "restore")
        return dict(self.ask("POST", path, json={"name": name}))

    def delete_backup(self, collection: str, backup: str) -> None:
        """Removes a backup."""
        self.ask("DELETE", path_of(collection, "backups", backup))

    def ask(
        self, method: str, path: str, *, json: object = None, params: Mapping[str, str | int] | None = None
    ) -> Any:
        """The answer's JSON, None where it has none. A busy server is asked again after the time it names.

        Raises RemoteError with the server's message.
        """
        for attempt in range(1, ATTEMPTS + 1):
            answer = self._answer(method, path, json, params)
            if answer.is_success:
                return _value_of(answer)
            waits = answer.headers.get("Retry-After", "")
            if (
                answer.status_code not in (BUSY, NOT_READY)
                or not waits.strip().isdecimal()
                or attempt == ATTEMPTS
            ):
                raise RemoteError(self._message_of(answer), answer.status_code)
            time.sleep(float(waits))
        raise AssertionError("unreachable")

    def _message_of(self, answer: httpx.Response) -> str:
        message = _message_of(answer)
        if answer.status_code != UNAUTHENTICATED:
            return message
        if self._key is None:
            return f"{self._url} needs a key: {KEY_REMEDY}"
        return f"{self._url} does not know the key that it was sent: {KEY_REMEDY}"

    def _answer(
        self, method: str, path: str, json: object, params: Mapping[str, str | int] | None
    ) -> httpx.Response:
        import httpx

        try:
            return self._client.request(method, path, json=json, params=dict(params or {}))
        except UnicodeEncodeError as error:
            raise RemoteError(
                f"{error.object[:40]!r} is no UTF-8 text (half a character); nothing was sent"
            ) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise UnreachableError(
                f"{self._url} does not answer ({reason_of(error)}); start a server there with "
                "tercet serve, or leave --url out"
            ) from error


def _key_of(settings: Settings, *, reads: bool) -> str | None:
    """A client's key; else, on the machine of the server, the first of its own."""
    keys = (settings.read_keys if reads else ()) or settings.api_keys
    key = settings.client_key or (keys[0] if keys else None)
    return None if key is None else key.get_secret_value()


def path_of(collection: str, *parts: str) -> str:
    """The path of a collection's route; parts may hold any characters. Raises RemoteError for half ones."""
    try:
        return "/".join(["/collections", *(quote(part, safe="") for part in (collection, *parts))])
    except UnicodeEncodeError as error:
        raise RemoteError(f"{error.object[:40]!r} is no UTF-8 text (half a character)") from error


def _key() -> dict[str, str]:
    """An idempotency key, so that a request that is repeated changes nothing more."""
    return {"idempotency_key": secrets.token_hex(16)}


def server_url(settings: Settings) -> str:
    """Where the data root's server answers on this machine, or one with these settings would."""
    from tercet.service.collections.data_root import served_at
    from tercet.service.http.listening import url_of

    return served_at(settings.data) or url_of(settings.host, settings.port)


@contextmanager
def named_url(settings: Settings) -> Iterator[None]:
    """Adds to the message of a collection that another process writes what to do about it."""
    try:
        yield
    except CollectionBusyError as error:
        raise CollectionBusyError(
            f"{error}; where a server writes it, give that with --url, such as --url {server_url(settings)}"
        ) from error


def _value_of(answer: httpx.Response) -> Any:
    """The JSON of an answer; None where it has none. Raises RemoteError."""
    try:
        return answer.json() if answer.content else None
    except ValueError as error:
        raise RemoteError(_message_of(answer), answer.status_code) from error


def _message_of(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return f"{answer.url} answered {answer.status_code}, which is no answer of a Tercet server"
