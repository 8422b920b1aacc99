"""One shape for every error, and the right status for each."""

import errno
import gc
import os
import sqlite3
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import tercet.index.errors
import tercet.models.errors
from tercet.index.errors import CollectionBusyError, UnforcedPublicationError
from tercet.index.ledger.file import index_errors
from tercet.index.snapshot import Snapshot
from tercet.service.error_table import TABLE
from tercet.service.errors import failure_of
from tercet.service.exceptions import InvalidRequestError, OverloadedError
from tests.service.error_shape import error_of

DEEP = "[" * 100_000
SEARCH = b'{"collection": "demo", "query": "tea"'


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nowhere", 404, "unknown_path"),
        ("GET", "/embed/", 404, "unknown_path"),
        ("GET", "/embed", 405, "method_not_allowed"),
        ("PATCH", "/collections/demo", 405, "method_not_allowed"),
        ("BREW", "/search", 405, "method_not_allowed"),
        ("GET", "/collections/none", 404, "collection_not_found"),
        ("GET", "/collections/..%2f..%2fetc", 404, "unknown_path"),
        ("GET", "/collections/%2e%2e", 422, "invalid_value"),
        ("GET", "/collections/Demo", 422, "invalid_value"),
        ("DELETE", "/collections/%00", 422, "invalid_value"),
        ("GET", "/collections/%ff%fe", 400, "not_utf8"),
        ("GET", "/collections/demo/documents/none", 404, "document_not_found"),
        ("GET", "/collections/demo/documents/..%2f..%2fetc%2fpasswd", 404, "document_not_found"),
        ("GET", f"/collections/demo/documents/{'x' * 5000}", 404, "document_not_found"),
        ("GET", "/jobs/none", 404, "job_not_found"),
        ("DELETE", "/jobs/..%2f..%2fetc", 404, "unknown_path"),
    ],
)
async def test_paths_and_methods(
    client: httpx.AsyncClient, method: str, path: str, status: int, code: str
) -> None:
    response = await client.request(method, path)
    assert response.status_code == status
    assert error_of(response)["code"] == code


@pytest.mark.parametrize(
    ("content", "content_type", "status", "code"),
    [
        (b"", "application/json", 400, "empty_body"),
        (b"", "text/plain", 400, "empty_body"),
        (SEARCH, "application/json", 400, "invalid_json"),
        (SEARCH + b', "top_k": NaN}', "application/json", 400, "invalid_json"),
        (SEARCH + b', "top_k": -Infinity}', "application/json", 400, "invalid_json"),
        (SEARCH + b', "top_k": 1e400}', "application/json", 400, "invalid_json"),
        (SEARCH + b', "top_k": 1' + b"0" * 5000 + b"}", "application/json", 400, "invalid_json"),
        (SEARCH + b', "top_k": 99999999999999999999}', "application/json", 422, "invalid_value"),
        (
            SEARCH + b', "filter": ' + b'{"not": ' * 500 + b"1" + b"}" * 501,
            "application/json",
            422,
            "invalid_filter",
        ),
        (DEEP.encode(), "application/json", 400, "invalid_json"),
        (b'{"a":' * 8_000, "application/json", 400, "invalid_json"),
        (b'"\xff\xfe"', "application/json", 400, "invalid_json"),
        (b'{"collection": "demo", "query": "\\ud800"}', "application/json", 400, "invalid_json"),
        ('{"collection": "demo", "query": "a"}'.encode("utf-16"), "application/json", 400, "invalid_json"),
        (b"[]", "application/json", 422, "invalid_value"),
        (b"null", "application/json", 422, "invalid_value"),
        (b'"text"', "application/json", 422, "invalid_value"),
        (SEARCH + b"}", "text/plain", 400, "unsupported_content_type"),
        (SEARCH + b"}", "application/x-www-form-urlencoded", 400, "unsupported_content_type"),
        (SEARCH + b"}", "multipart/form-data; boundary=x", 400, "unsupported_content_type"),
        (SEARCH + b"}", "application/jsonp", 400, "unsupported_content_type"),
        (SEARCH + b"}", "\xff", 400, "unsupported_content_type"),
        (SEARCH + b', "query": "train"}', "application/json; charset=utf-8", 200, None),
    ],
)
async def test_bodies(
    client: httpx.AsyncClient, content: bytes, content_type: str, status: int, code: str | None
) -> None:
    response = await client.post(
        "/search", content=content, headers={b"Content-Type": content_type.encode("latin-1")}
    )
    assert response.status_code == status, response.text
    if code is not None:
        assert error_of(response)["code"] == code


LARGE = b'{"collection": "demo", "query": "q", "exclude": [' + b'"x",\n' * 20_000


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (SEARCH + b',\n "top_k": NaN}', "line 2, column 11 has NaN: JSON has no such number; use null"),
        (LARGE + b"NaN]}", "line 20001, column 1 has NaN: JSON has no such number; use null"),
        (LARGE + b",1]}", "line 20001, column 1 has ,: a value belongs here; strings stand in double quotes"),
    ],
)
async def test_json_that_is_none_is_told_with_its_place(
    client: httpx.AsyncClient, content: bytes, message: str
) -> None:
    answer = await client.post("/search", content=content, headers={"Content-Type": "application/json"})
    assert error_of(answer)["message"] == f"the body is not valid JSON: {message}"


@pytest.mark.parametrize(
    ("content", "status", "code"),
    [
        (b"", None, None),
        (b"{}", None, None),
        (b"null", None, None),
        (b"garbage", 400, "invalid_json"),
        (b"[1]", 422, "invalid_value"),
        (b'{"x": 1}', 422, "unknown_field"),
    ],
)
@pytest.mark.parametrize(
    ("method", "path", "success"),
    [
        ("POST", "/collections/demo/merge", 202),
        ("POST", "/collections/demo/backups", 201),
        ("DELETE", "/collections/demo/documents/tea", 200),
        ("DELETE", "/collections/demo", 204),
    ],
)
async def test_the_body_of_a_route_that_takes_none_is_looked_at(
    client: httpx.AsyncClient,
    method: str,
    path: str,
    success: int,
    content: bytes,
    status: int | None,
    code: str | None,
) -> None:
    headers = {"Content-Type": "application/json"}
    answer = await client.request(method, path, content=content, headers=headers)
    assert answer.status_code == (status or success)
    if code is not None:
        assert error_of(answer)["code"] == code


@pytest.mark.parametrize(
    ("path", "content", "param"),
    [
        ("/embed", b'{"inputs": [' + b"1," * 1_000 + b"1]}", "inputs.0"),
        ("/embed", b'{"inputs": "a", "outputs": [' + b"1," * 140_000 + b"1]}", "outputs.0"),
        ("/search", SEARCH + b"," + b",".join(b'"a%d":1' % n for n in range(8_000)) + b"}", "a0"),
        (
            "/search",
            SEARCH + b', "weights": {' + b",".join(b'"a%d":1' % n for n in range(8_000)) + b"}}",
            "weights.a0",
        ),
        ("/search", SEARCH[:-5] + b'{"colbert": [' + b'["a"],' * 70_000 + b"[]]}}", "query.colbert.0.0"),
        (
            "/search",
            SEARCH[:-5] + b'{"sparse": {"weights": [' + b"-1," * 140_000 + b"1]}}}",
            "query.sparse.weights.0",
        ),
    ],
)
async def test_thousands_of_mistakes_are_told_as_one(
    client: httpx.AsyncClient, path: str, content: bytes, param: str
) -> None:
    response = await client.post(path, content=content, headers={"Content-Type": "application/json"})
    assert response.status_code == 422
    assert error_of(response)["param"] == param
    assert len(response.content) < 3000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/embed", {"inputs": "tea", "outputs": [[0.5]] * 10_000}, 422),
        ("/search", {"collection": "demo", "query": "tea", "filter": {"in": {"year": [[1]] * 10_000}}}, 422),
        ("/collections/demo/jobs", {"source": [[0.5]] * 10_000}, 422),
        ("/tei/embed", {"inputs": [[1]] * 10_000}, 413),
        ("/v1/embeddings", {"input": [[0.5]] * 10_000}, 422),
    ],
)
async def test_what_was_refused_is_freed_with_its_answer(
    client: httpx.AsyncClient, path: str, body: dict[str, Any], status: int
) -> None:
    """Left to the collector of cycles, it would take memory, and hold all threads when that frees it."""
    await client.post(path, json=body)  # the first makes what stays
    gc.collect()
    gc.disable()
    try:
        answer = await client.post(path, json=body)
        assert (answer.status_code, gc.collect() < 2_000) == (status, True)
    finally:
        gc.enable()


async def test_a_bug_is_500_without_a_traceback(make_client: Any, tiny: Any, caplog: Any) -> None:
    class Broken(type(tiny)):  # type: ignore[misc]
        def encode_tokens(self, batch: Any, outputs: Any = (), adapters: Any = None) -> Any:
            if len(batch.token_ids) == 5:
                raise ZeroDivisionError("a secret detail")
            return super().encode_tokens(batch, outputs or ("dense",), adapters)

    async with make_client(encoder=Broken()) as client:
        response = await client.post("/embed", json={"inputs": "tea tea tea"})
        assert response.status_code == 500
        assert error_of(response)["type"] == "internal"
        assert "secret" not in response.text
        assert "a secret detail" in caplog.text
        assert (await client.post("/embed", json={"inputs": "tea", "outputs": ["dense"]})).status_code == 200


def test_what_clients_can_cause_has_a_status() -> None:
    own = {
        tercet.index.errors.SearchIndexError,
        tercet.index.errors.DeviceUnavailableError,
        tercet.index.errors.NothingToTuneError,
        tercet.models.errors.ModelError,
        tercet.models.errors.CheckpointError,
    }
    for module in (tercet.index.errors, tercet.models.errors):
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, Exception):
                assert (value in TABLE) != (value in own), value


def test_failing_storage_is_503_without_paths() -> None:
    failure = failure_of(PermissionError(errno.EROFS, "Read-only file system", "/secret/collections"))
    assert (failure.status, failure.code) == (503, "storage_unavailable")
    assert failure.message == "the server's storage failed: Read-only file system"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/search"),
        ("GET", "/collections/demo/documents"),
        ("GET", "/collections/demo/documents/a"),
    ],
)
async def test_a_request_that_memory_does_not_suffice_for_is_503(
    client: httpx.AsyncClient, method: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def large(*_: object, **__: object) -> None:
        np.empty(2**50, np.uint8)  # more than any process may have

    for name in ("answer", "page", "get"):
        monkeypatch.setattr(Snapshot, name, large)
    body = {"collection": "demo", "query": "tea"} if method == "POST" else None
    response = await client.request(method, path, json=body)
    error = error_of(response)
    assert (response.status_code, error["type"], error["code"]) == (503, "not_ready", "out_of_memory")
    assert "ask for less at a time" in error["message"]
    assert (await client.get("/health")).status_code == 200


@pytest.mark.parametrize("blanks", [0, 1 << 20])
@pytest.mark.parametrize("path", ["/search", "/rerank", "/collections/demo/documents/delete"])
async def test_a_body_that_memory_does_not_suffice_for_is_503(
    client: httpx.AsyncClient, path: str, blanks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def want(_text: bytes) -> None:
        raise MemoryError

    for module in ("requests.direct", "requests.json_route", "http.json_body"):
        monkeypatch.setattr(f"tercet.service.{module}.loads", want)
    answer = await client.post(
        path, content=b"{}" + b" " * blanks, headers={"content-type": "application/json"}
    )
    assert (answer.status_code, error_of(answer)["code"]) == (503, "out_of_memory")


def test_memory_that_cannot_be_mapped_is_no_failure_of_the_storage() -> None:
    failure = failure_of(OSError(errno.ENOMEM, os.strerror(errno.ENOMEM), "/secret/place"))
    assert (failure.status, failure.code) == (503, "out_of_memory")
    assert "secret" not in failure.message


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_507_with_the_remedy(number: int) -> None:
    failure = failure_of(OSError(number, os.strerror(number), "/secret/place"))
    assert (failure.status, failure.code) == (507, "storage_full")
    assert "free space there and try again" in failure.message
    assert "secret" not in failure.message


def test_messages_that_json_cannot_carry_are_mended() -> None:
    failure = failure_of(InvalidRequestError("bad \ud800 value", "inputs.0", "text_too_long"))
    assert failure.status == 422
    assert b'"bad ? value"' in failure.body


def test_overload_says_when_to_try_again() -> None:
    response = failure_of(OverloadedError("full", 2.3, "queue")).response()
    assert response.status_code == 429
    assert response.headers["Retry-After"] == "3"


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PATCH", "/collections/demo", "DELETE, GET, HEAD, PUT"),
        ("PUT", "/jobs/x", "DELETE, GET, HEAD"),
        ("GET", "/rerank", "POST"),
        ("PUT", "/search", "GET, HEAD, POST"),
        ("HEAD", "/rerank", "POST"),
        ("POST", "/health", "GET, HEAD"),
        ("POST", "/docs", "GET, HEAD"),
        ("POST", "/openapi.json", "GET, HEAD"),
    ],
)
async def test_405_names_every_method_of_the_path(
    client: httpx.AsyncClient, method: str, path: str, allowed: str
) -> None:
    response = await client.request(method, path)
    assert response.status_code == 405
    assert response.headers["Allow"] == allowed
    if method != "HEAD":
        assert error_of(response)["message"] == f"'{path}' does not take {method}; it takes {allowed}"


async def test_a_slash_at_the_end_of_a_path_is_named(client: httpx.AsyncClient) -> None:
    message = error_of(await client.get("/collections/"))["message"]
    assert message == "there is no path '/collections/'; leave the slash at its end out"


@pytest.mark.slow
async def test_weights_of_rerank_may_leave_bm25_null(client: httpx.AsyncClient) -> None:
    body = {"query": "q", "inputs": ["d"], "weights": {"dense": 1, "bm25": None}}
    assert (await client.post("/rerank", json=body)).status_code == 200
    schemas = (await client.get("/openapi.json")).json()["components"]["schemas"]
    assert list(schemas["RerankWeightsRequest"]["properties"]) == ["dense", "sparse", "colbert"]


def test_what_the_index_says_of_its_files_stays_in_the_log() -> None:
    """Of a publication that could not be forced, and of a ledger that another program holds."""
    unforced = failure_of(UnforcedPublicationError("it was published ([Errno 5] failed: '/secret/CURRENT')"))
    assert (unforced.status, unforced.code) == (503, "storage_unavailable")
    assert "secret" not in unforced.message
    locked = sqlite3.OperationalError("locked")
    locked.sqlite_errorcode, locked.sqlite_errorname = sqlite3.SQLITE_BUSY, "SQLITE_BUSY"
    with pytest.raises(CollectionBusyError) as busy, index_errors(Path("/secret/demo/ledger.sqlite")):
        raise locked
    assert "secret" not in failure_of(busy.value).message
