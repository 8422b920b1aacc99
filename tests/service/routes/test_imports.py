"""Files into a collection over HTTP: what is read of them, how far it is, and what goes wrong."""

import asyncio
import gzip
import io
import json
import socket
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tercet.ingest.sources.columns import content_id
from tests.pdf_files import pdf_of

ROUTE = "/collections/demo/import"
DEMO = "/collections/demo/documents"
TABLE = b"id,title,body,year\na,Green,hot tea,2001\nb,,the train,1830\n"


async def imported(client: httpx.AsyncClient, name: str, content: Any, **query: Any) -> list[dict[str, Any]]:
    """The lines of the answer."""
    response = await client.post(ROUTE, params={"filename": name, **query}, content=content)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/jsonl"
    return [json.loads(line) for line in response.text.splitlines()]


async def refused(client: httpx.AsyncClient, name: str, content: Any, **query: Any) -> dict[str, Any]:
    response = await client.post(ROUTE, params={"filename": name, **query}, content=content)
    error: dict[str, Any] = response.json()["error"]
    return {"status": response.status_code, **error}


async def stored(client: httpx.AsyncClient, id: str) -> dict[str, Any]:
    found: dict[str, Any] = (await client.get(f"{DEMO}/{id}")).json()
    return found


def arrow(rows: list[dict[str, Any]]) -> bytes:
    pyarrow = pytest.importorskip("pyarrow", reason="needs pyarrow: the extra parquet")
    from pyarrow import ipc

    table, file = pyarrow.Table.from_pylist(rows), io.BytesIO()
    with ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table)
    return file.getvalue()


def parquet(rows: list[dict[str, Any]]) -> bytes:
    pyarrow = pytest.importorskip("pyarrow", reason="needs pyarrow: the extra parquet")
    from pyarrow import parquet as parquets

    file = io.BytesIO()
    parquets.write_table(pyarrow.Table.from_pylist(rows), file)
    return file.getvalue()


async def test_a_table_is_written_and_found(client: httpx.AsyncClient) -> None:
    lines = await imported(client, "a.csv", TABLE, text_field="body")
    assert lines == [
        {"documents": 2, "skipped": 0, "position": 1, "fraction": 1.0},
        {"documents": 2, "skipped": 0, "position": 1, "fraction": 1.0, "done": True, "reasons": []},
    ]
    assert await stored(client, "a") == {
        "id": "a",
        "title": "Green",
        "text": "hot tea",
        "metadata": {"year": 2001},  # a declared field
    }
    answer = await client.post("/search", json={"collection": "demo", "query": "hot tea"})
    assert "a" in [hit["id"] for hit in answer.json()["hits"]]


RECORDS = [{"id": "a", "text": "hot tea", "n": 1}, {"id": "b", "text": "rail", "n": 2}]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("a.tsv", lambda: b"id\ttext\tn\na\thot tea\t1\nb\trail\t2\n"),
        ("a.json", lambda: json.dumps({"data": RECORDS}).encode()),
        ("a.jsonl", lambda: b"\n".join(json.dumps(each).encode() for each in RECORDS)),
        ("a.jsonl.gz", lambda: gzip.compress(b"\n".join(json.dumps(each).encode() for each in RECORDS))),
        ("a.parquet", lambda: parquet(RECORDS)),
        ("a.arrow", lambda: arrow(RECORDS)),
    ],
)
async def test_every_kind_of_table(client: httpx.AsyncClient, name: str, make: Any) -> None:
    lines = await imported(client, name, make())
    assert lines[-1]["documents"] == 2
    assert (await stored(client, "a"))["text"] == "hot tea"
    assert int((await stored(client, "b"))["metadata"]["n"]) == 2


async def test_texts_are_documents_by_their_paths(client: httpx.AsyncClient) -> None:
    pytest.importorskip("semantic_text_splitter", reason="needs the extra files")
    text = b"---\ntitle: Guide\nyear: 2020\n---\nBefore.\n\n# Tea\n\nhot tea\n"
    await imported(client, "guide book/sub/a.md", text, split="markdown")
    passage = await stored(client, "guide%20book/sub/a.md%23tea")
    assert (passage["text"], passage["metadata"]["source"]) == ("hot tea", "guide book/sub/a.md")
    *_, last = await imported(client, "guide book/sub/a.md", b"# Rail\n\nthe train\n", split="markdown")
    gone = await client.get(f"{DEMO}/guide%20book/sub/a.md%23tea", params={"min_position": last["position"]})
    assert gone.status_code == 404
    assert (await stored(client, "guide%20book/sub/a.md%23rail"))["text"] == "the train"
    await imported(client, "b.txt", "찬물".encode("cp949"), encoding="cp949")
    assert (await stored(client, "b.txt"))["text"] == "찬물"


async def test_html_is_read(client: httpx.AsyncClient) -> None:
    pytest.importorskip("selectolax", reason="needs the extra files")
    await imported(client, "a.html", b"<title>Tea</title><body><p>hot <b>tea</b></p>")
    assert (await stored(client, "a.html"))["title"] == "Tea"
    assert "hot tea" in (await stored(client, "a.html"))["text"]


async def test_a_pdf_is_read(client: httpx.AsyncClient) -> None:
    pytest.importorskip("pypdfium2", reason="needs the extra files")
    content = pdf_of(["hot tea"], ["the train"], title="Brewing")
    await imported(client, "a.pdf", content)
    whole = await stored(client, "a.pdf")
    assert (whole["title"], whole["text"].split()) == ("Brewing", ["hot", "tea", "the", "train"])
    await imported(client, "a.pdf", content, split="markdown")
    metadata = (await stored(client, "a.pdf%23page=1"))["metadata"]  # pages this small are one passage
    assert (metadata["page"], metadata["last_page"]) == (1, 2)
    error = await refused(client, "b.pdf", b"%PDF-1.4 and nothing more")
    assert (error["status"], error["code"]) == (422, "bad_source")
    assert "b.pdf: no readable PDF" in error["message"]


async def test_a_body_in_pieces(client: httpx.AsyncClient) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for place in range(0, len(TABLE), 7):
            yield TABLE[place : place + 7]
            await asyncio.sleep(0)

    lines = await imported(client, "a.csv", pieces(), text_field="body")
    assert lines[-1]["documents"] == 2


async def test_groups_are_told_as_they_are_written(client: httpx.AsyncClient, data: Path) -> None:
    rows = b"".join(b'{"id": "d%d", "text": "tea %d"}\n' % (place, place) for place in range(150))
    lines = await imported(client, "a.jsonl", rows)
    assert [line["documents"] for line in lines] == [64, 128, 150, 150]
    assert [line["position"] for line in lines] == [1, 2, 3, 3]
    assert list((data / "imports").iterdir()) == []


async def test_bad_records_stop_or_are_skipped(make_client: Any) -> None:
    rows = b'{"id": "a", "text": "tea"}\n{"id": "b"}\n{"id": "c", "text": "%s"}\n' % (b"x" * 200)
    async with make_client(max_characters=100) as client:
        error = await refused(client, "a.jsonl", rows)
        assert (error["status"], error["code"]) == (422, "bad_source")
        assert error["message"].startswith('a.jsonl line 2: "text" is missing')
        assert "--" not in error["message"]
        last = (await imported(client, "a.jsonl", rows, on_error="skip"))[-1]
        assert (last["documents"], last["skipped"], last["done"]) == (1, 2, True)
        assert last["reasons"][0] == 'a.jsonl line 2: "text" is missing'
        assert last["reasons"][1].startswith("document 'c': it has 200 characters; the limit is 100")


async def test_an_error_after_the_first_line_is_the_last_line(client: httpx.AsyncClient) -> None:
    rows = [b'{"id": "d%d", "text": "tea"}\n' % place for place in range(100)]
    lines = await imported(client, "a.jsonl", b"".join([*rows, b"no\n"]))
    assert lines[0]["documents"] == 64
    assert lines[-1]["error"]["code"] == "bad_source"
    assert lines[-1]["error"]["message"].startswith("a.jsonl line 101:")
    assert (await stored(client, "d63"))["text"] == "tea"


@pytest.mark.parametrize(
    ("name", "content", "query", "code", "said"),
    [
        ("a.xlsx", b"x", {}, "bad_source", "a.xlsx: .xlsx is not read; save it as CSV"),
        ("a", b"x", {}, "bad_source", "a: unknown kind of file"),
        ("a.parquet", b"x", {}, "bad_source", "a.parquet"),
        ("a.csv", b"", {}, "bad_source", "a.csv"),
        ("a.csv", b"id,words\n1,tea\n", {}, "bad_source", "text_field"),
        ("a.csv", TABLE, {"text_field": "none"}, "bad_source", "none"),
        ("a.csv.gz", b"x", {}, "bad_source", "a.csv.gz"),
        ("a.csv", TABLE, {"encoding": "none"}, "bad_source", "encoding 'none'"),
        ("../a.csv", TABLE, {}, "invalid_value", "filename"),
        ("/a.csv", TABLE, {}, "invalid_value", "filename"),
        ("a.csv", TABLE, {"text_column": "body"}, "unknown_parameter", "text_field"),
        ("a.csv", TABLE, {"split": "words"}, "invalid_value", "split"),
        ("a.csv", TABLE, {"format": "xlsx"}, "invalid_value", "format"),
        ("a.csv", TABLE, {"records": "a..b"}, "invalid_value", "records"),
        ("a.csv", TABLE, {"records": "a"}, "bad_source", "records goes with JSON"),
        ("a.json", b'{"a": [{}], "b": [{}]}', {}, "bad_source", "the one of the records with records"),
        ("a.csv", TABLE, {"split_size": 64}, "invalid_value", "split_size goes with split"),
        ("a.csv", TABLE, {"generate_ids": True, "id_field": "id"}, "invalid_value", "generate_ids"),
    ],
)
async def test_what_cannot_be_read_says_why(
    client: httpx.AsyncClient, name: str, content: bytes, query: dict[str, Any], code: str, said: str
) -> None:
    for more in ({}, {"dry_run": True}):
        if code == "bad_source" and more and (not content or "text" in "".join([*query, said])):
            continue  # a preview has that as its problem
        error = await refused(client, name, content, **query, **more)
        assert (error["status"], error["code"]) == (422, code), error
        assert said in error["message"]
        assert "/imports/" not in error["message"]


async def test_columns_are_left_out(client: httpx.AsyncClient) -> None:
    rows = b'{"id": "a", "text": "tea", "x": 1, "y": 2, "metadata": {"z": 3}}\n'
    await imported(client, "a.jsonl", rows, no_metadata_field=["x", "z"])
    assert (await stored(client, "a"))["metadata"] == {"y": 2}
    await imported(client, "a.jsonl", rows, metadata_field=["x", "y"])
    assert (await stored(client, "a"))["metadata"] == {"x": 1, "y": 2}
    nested = b'{"data": [{"parts": [{"id": "n", "text": "mint"}]}], "other": [{}]}'
    await imported(client, "dump", nested, format="json", records="data.parts")
    assert (await stored(client, "n"))["text"] == "mint"
    await imported(client, "a.jsonl", b'{"text": "tea"}\n', generate_ids=True)
    assert (await stored(client, content_id("tea", None, {})))["text"] == "tea"


async def test_a_dry_run_writes_nothing(client: httpx.AsyncClient) -> None:
    query = {"filename": "a.csv", "text_field": "body", "dry_run": True}
    # The one declares the field, and the other is not there yet.
    for name, years in (("demo", [2001, 1830]), ("new", ["2001", "1830"])):
        response = await client.post(f"/collections/{name}/import", params=query, content=TABLE)
        assert response.json() == {
            "columns": [
                {"name": "id", "samples": ["a", "b"], "type": None},
                {"name": "title", "samples": ["Green"], "type": None},
                {"name": "body", "samples": ["hot tea", "the train"], "type": None},
                {"name": "year", "samples": ["2001", "1830"], "type": "integer"},
            ],
            "options": {
                "text_field": "body",
                "title_field": "title",
                "id_field": "id",
                "generate_ids": False,
                "encoding": "utf-8",
                "delimiter": ",",
                "split": None,
            },
            "documents": [
                {"id": "a", "title": "Green", "text": "hot tea", "metadata": {"year": years[0]}},
                {"id": "b", "title": None, "text": "the train", "metadata": {"year": years[1]}},
            ],
            "skipped": 0,
            "reasons": [],
            "problem": None,
        }
    assert (await client.get(f"{DEMO}/a")).status_code == 404


async def test_a_dry_run_tells_of_unclear_columns(client: httpx.AsyncClient) -> None:
    query = {"filename": "a.csv", "dry_run": True}
    found = (await client.post(ROUTE, params=query, content=b"words,k\ntea,1\n")).json()
    assert [each["name"] for each in found["columns"]] == ["words", "k"]
    assert found["documents"] == []
    assert "text_field" in found["problem"]
    assert found["options"]["text_field"] is None


async def test_files_are_bounded(make_client: Any, data: Path) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b"x" * 100

    async with make_client(max_import_bytes=1000, max_body_bytes=100) as client:
        for content in (b"x" * 1001, pieces()):
            error = await refused(client, "a.csv", content)
            assert (error["status"], error["code"]) == (413, "request_too_large")
            assert "max_import_bytes" in error["message"]
        rows = b"".join(b"%d,tea\n" % place for place in range(50))
        assert len(b"id,text\n" + rows) > 100
        assert (await imported(client, "a.csv", b"id,text\n" + rows))[-1]["documents"] == 50
    assert not list((data / "imports").iterdir())


async def test_a_collection_that_is_not_there(client: httpx.AsyncClient) -> None:
    response = await client.post("/collections/none/import", params={"filename": "a.csv"}, content=TABLE)
    assert (response.status_code, response.json()["error"]["code"]) == (404, "collection_not_found")


async def test_a_key_must_write(make_client: Any) -> None:
    async with make_client(api_keys="writer", read_keys="reader") as client:
        for key, status in (("reader", 403), ("writer", 200), ("none", 401)):
            response = await client.post(
                ROUTE,
                params={"filename": "a.csv", "text_field": "body"},
                content=TABLE,
                headers={"Authorization": f"Bearer {key}"},
            )
            assert response.status_code == status, response.text


async def test_forms_and_encoded_bodies_are_refused(client: httpx.AsyncClient) -> None:
    query = {"filename": "a.csv"}
    form = await client.post(ROUTE, params=query, files={"file": TABLE})
    assert (form.status_code, form.json()["error"]["code"]) == (400, "unsupported_content_type")
    packed = await client.post(
        ROUTE, params=query, content=gzip.compress(TABLE), headers={"Content-Encoding": "gzip"}
    )
    assert (packed.status_code, packed.json()["error"]["code"]) == (400, "unsupported_content_encoding")


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "TEXT/PLAIN; charset=utf-8"]
)
async def test_a_page_of_another_server_sends_no_type_that_browsers_send_unasked(
    client: httpx.AsyncClient, kind: str
) -> None:
    url, body = "/collections/demo/import?filename=a.csv", b"id,text\nx,tea\n"
    foreign = {"Origin": "http://localhost:3000", "Content-Type": kind}
    refused = await client.post(url, content=body, headers=foreign)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "unsupported_content_type")
    assert (await client.get("/collections/demo/documents/x")).status_code == 404
    for headers in ({"Content-Type": kind}, foreign | {"Content-Type": "application/octet-stream"}):
        assert (await client.post(url, content=body, headers=headers)).status_code == 200


@pytest.mark.parametrize("filename", ["tea/" * 400 + "a.txt", "é" * 130 + ".txt"])
async def test_a_name_that_no_disk_takes_is_told(client: httpx.AsyncClient, filename: str) -> None:
    error = await refused(client, filename, b"tea")
    assert (error["status"], error["param"]) == (422, "filename")
    assert "a name has at most 255, and a path 1024" in error["message"]


async def test_a_missing_extra_says_how_to_get_it(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "tercet.ingest.sources.arrow_rows", None)
    monkeypatch.setitem(sys.modules, "semantic_text_splitter", None)
    assert "parquet" in (await refused(client, "a.parquet", b"PAR1"))["message"]
    error = await refused(client, "a.md", b"# Tea\n\nhot\n", split="markdown")
    assert error["status"] == 422
    assert 'pip install "tercet[files]"' in error["message"]


@pytest.mark.slow
def test_a_client_that_leaves_ends_it(make_server: Any, data: Path) -> None:
    rows = b"".join(b'{"id": "d%d", "text": "tea %d"}\n' % (place, place) for place in range(20_000))
    with make_server() as url:
        place = urlsplit(url)
        with socket.create_connection((place.hostname, place.port)) as connection:
            head = f"POST {ROUTE}?filename=a.jsonl HTTP/1.1\r\nHost: x.localhost\r\n"
            head = head.replace("x.localhost", f"{place.hostname}:{place.port}")
            connection.sendall(f"{head}Content-Length: {len(rows)}\r\n\r\n".encode() + rows)
            answer = b""
            while b'"documents":64' not in answer:
                answer += connection.recv(4096)
        limit = time.monotonic() + 30
        while list((data / "imports").iterdir()) and time.monotonic() < limit:
            time.sleep(0.05)
        assert list((data / "imports").iterdir()) == []
        count = httpx.post(f"{url}{DEMO}/count", json={}).json()["count"]
        time.sleep(0.3)
        assert httpx.post(f"{url}{DEMO}/count", json={}).json()["count"] == count < 20_000
        with socket.create_connection((place.hostname, place.port)) as connection:  # before its body is whole
            connection.sendall(f"{head}Content-Length: {len(rows)}\r\n\r\n".encode() + rows[:100_000])
        while list((data / "imports").iterdir()) and time.monotonic() < limit:
            time.sleep(0.05)
        assert list((data / "imports").iterdir()) == []
