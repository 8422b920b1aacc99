"""Vespa: the document API's and the feed's documented shapes, and a schema that fits what is fed.

There is no Vespa here. A server takes what the reference of `/document/v1` describes; the rank profile is
computed as the schema writes it.
"""

from __future__ import annotations

import dataclasses
import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree import ElementTree

import numpy as np
import pytest

from tercet.index.candidates import Document
from tercet.index.catalog.settings import CollectionSettings
from tercet.models.representations import SparseRows, offsets_of
from tercet.transfer.errors import TargetExistsError, TransferError
from tercet.transfer.push import export
from tercet.transfer.records import StoredDocuments
from tercet.transfer.rest import RestServer
from tercet.transfer.vespa import VespaTarget, feed_fields
from tercet.transfer.vespa_schema import schema_of, vespa_name


class Vespa:
    """What an application of one document type holds. unavailable: requests that it refuses at first."""

    def __init__(self) -> None:
        self.documents: dict[str, Any] = {}
        self.unavailable = 0
        self.refuse: str | None = None


@pytest.fixture
def vespa() -> Iterator[tuple[Vespa, str]]:
    held = Vespa()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self, status: int, body: Any) -> None:
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            assert parts.path == "/document/v1/docs/docs/docid/"
            assert parse_qs(parts.query) == {"wantedDocumentCount": ["1"]}
            documents = [{"id": f"id:docs:docs::{name}", "fields": {}} for name in list(held.documents)[:1]]
            self.answer(200, {"pathId": parts.path, "documents": documents, "documentCount": len(documents)})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            prefix = "/document/v1/docs/docs/docid/"
            assert self.path.startswith(prefix)
            assert "/" not in self.path.removeprefix(prefix)
            assert list(body) == ["fields"]
            name = unquote(self.path.removeprefix(prefix))
            if held.unavailable:
                held.unavailable -= 1
                self.answer(429, {"message": "too busy"})
            elif name == held.refuse:
                self.answer(400, {"message": "No field 'colbert' in the structure"})
            else:
                require_shape(body["fields"])
                held.documents[name] = body["fields"]
                self.answer(200, {"pathId": self.path, "id": f"id:docs:docs::{name}"})

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield held, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def require_shape(fields: dict[str, Any]) -> None:
    """The JSON format of documents: tensors as values, cells or blocks, a weighted set as an object."""
    assert set(fields) <= {
        "id",
        "title",
        "text",
        "metadata",
        "dense",
        "terms",
        "sparse",
        "colbert",
        "meta_year",
        "meta_kind",
    }
    assert isinstance(json.loads(fields["metadata"]), dict)
    assert all(isinstance(weight, int) and weight >= 1 for weight in fields["terms"].values())
    assert set(fields["sparse"]) == {"cells"}
    assert set(fields["sparse"]["cells"]) == set(fields["terms"])
    for name in ("dense", "colbert"):
        tensor = fields.get(name, {"values": []})
        assert set(tensor) in ({"values"}, {"blocks"})
        blocks = tensor.get("blocks", {})
        if isinstance(blocks, list):
            assert all(set(block) == {"address", "values"} for block in blocks)
            assert all(isinstance(label, str) for block in blocks for label in block["address"].values())


def target_at(url: str, settings: CollectionSettings) -> VespaTarget:
    return VespaTarget("docs", settings, 10, server=RestServer("Vespa", url, None))


@pytest.mark.slow
def test_feeding(make: Any, vespa: tuple[Vespa, str], monkeypatch: Any) -> None:
    held, url = vespa
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    snapshot = make("plain").snapshot()
    held.unavailable = 3
    assert export(snapshot, target_at(url, snapshot.settings)) == 57
    assert len(held.documents) == 57
    fields, document = held.documents["d/20 é"], snapshot.get("d/20 é")
    assert document is not None
    assert (fields["title"], fields["text"]) == (document.title, document.text)
    assert json.loads(fields["metadata"]) == document.metadata
    assert (fields["meta_year"], fields["meta_kind"]) == (2020, ["c"])
    stored = snapshot.stored("d/20 é")[1]
    assert stored is not None
    assert np.array_equal(np.array(fields["dense"]["values"], np.float32), stored.dense[0])
    with pytest.raises(TargetExistsError, match="Vespa document type 'docs' exists"):
        export(snapshot, target_at(url, snapshot.settings))
    assert export(snapshot, target_at(url, snapshot.settings), resume=True) == 57
    with pytest.raises(TransferError, match="are not removed from here"):
        export(snapshot, target_at(url, snapshot.settings), overwrite=True)
    held.refuse = "d/30 é"
    expected = r"No field 'colbert' in the structure; Vespa .* has at least"
    with pytest.raises(TransferError, match=expected) as caught:
        export(snapshot, target_at(url, snapshot.settings), resume=True)
    assert str(caught.value).endswith("go on with --resume")


@pytest.mark.parametrize("kind", ["idf", "none", "windows"])
def test_an_application_with_its_feed_and_a_query_that_scores_as_we_do(
    make: Any, tmp_path: Path, queries: list[str], ask: Any, hits: Any, kind: str
) -> None:
    snapshot, folder = make(kind).snapshot(), tmp_path / "vespa"
    target = VespaTarget("my-docs", snapshot.settings, 10, folder=folder)
    assert export(snapshot, target) == 57
    services = ElementTree.parse(folder / "services.xml").getroot()  # noqa: S314
    assert services.find("content/documents/document").attrib == {"type": "my_docs", "mode": "index"}  # type: ignore[union-attr]
    assert json.loads((folder / "tercet.json").read_text())["settings"]["fingerprint"]
    schema = (folder / "schemas" / "my_docs.sd").read_text()
    assert schema.count("{") == schema.count("}")
    declared = dict(re.findall(r"field (\w+) type (.+) \{", schema))
    fed = {}
    for line in (folder / "feed.jsonl").read_text().splitlines():
        operation = json.loads(line)
        assert list(operation) == ["put", "fields"]
        require_shape(operation["fields"])
        assert set(operation["fields"]) <= set(declared)
        fed[operation["put"].removeprefix("id:my_docs:my_docs::")] = operation["fields"]
    assert len(fed) == 57
    assert declared["sparse"] == "tensor<float>(t{})"
    assert declared["dense"] == f"tensor<float>({'w{}, ' if kind == 'windows' else ''}x[8])"
    for text in queries[:5]:
        body = json.loads(target.query(ask(snapshot, text)).splitlines()[-2])
        for hit in hits(snapshot, text):
            scores = profile(schema, body, fed[hit.document.id])
            expected = [
                hit.scores.dense,
                hit.scores.sparse,
                *([] if kind == "none" else [hit.scores.colbert]),
            ]
            assert scores == pytest.approx(expected, abs=1e-5)
        assert body["yql"].startswith("select id, title, text, metadata from my_docs where ")
        wanted = body["input.query(sparse)"]
        pairs = dict(re.findall(r"\[(\d+), (\d+)\]", body["yql"]))
        assert set(pairs) == set(wanted)


def profile(schema: str, body: dict[str, Any], fields: dict[str, Any]) -> list[float]:
    """What the rank profile's functions give for a document."""
    dense = np.array(body["input.query(dense)"])
    terms, cells = body["input.query(sparse)"], fields["sparse"]["cells"]
    windows = "max, w)" in schema
    assert ("reduce(sum(query(dense) * attribute(dense), x), max, w)" in schema) == windows
    vectors = [fields["dense"]["values"]] if not windows else fields["dense"]["blocks"].values()
    found = [max(float(dense @ np.array(vector)) for vector in vectors)]
    found.append(sum(weight * cells.get(term, 0.0) for term, weight in terms.items()))
    if "s_mul" not in schema:
        assert "input.query(colbert)" not in body
        return found
    assert "reduce(reduce(sum(query(colbert) * attribute(colbert), y), max, j), avg, i)" in schema
    query, blocks = np.array(list(body["input.query(colbert)"].values())), fields["colbert"]["blocks"]
    tokens: dict[str, list[Any]] = {}
    for block in (
        blocks if windows else [{"address": {"w": "0"}, "values": value} for value in blocks.values()]
    ):
        tokens.setdefault(block["address"]["w"], []).append(block["values"])
    found.append(max(float((query @ np.array(own).T).max(axis=1).mean()) for own in tokens.values()))
    return found


@pytest.mark.slow
def test_names_and_texts_that_vespa_refuses() -> None:
    assert vespa_name("my-docs") == "my_docs"
    assert vespa_name("2nd") == "c_2nd"
    settings = CollectionSettings("x", "tiny", "f", 2, 0, 10, token_codec="none", fields={"a.b": "number"})
    sparse = SparseRows(offsets_of(np.array([1])), np.array([3], np.int32), np.array([0.0001], np.float32))
    document = Document("a\x00b", "one\x0btwo\nthree\ufffe", None, {"a.b": 1.5})
    stored = StoredDocuments([document], np.ones((1, 2), np.float32), sparse, sparse, None, None)
    several = dataclasses.replace(stored, documents=[Document("b", "two", None, {"a.b": [1.5, 2]})])
    with pytest.raises(TransferError, match=r"document 'b' has 2 values in 'a\.b', .* room for one"):
        feed_fields(several, 0, settings)
    fields = feed_fields(stored, 0, settings)
    assert (fields["id"], fields["text"]) == ("a\ufffdb", "one\ufffdtwo\nthree\ufffd")
    assert (fields["meta_a_b"], fields["terms"]) == (1.5, {"3": 1})
    assert "title" not in fields
    assert "field meta_a_b type double {" in schema_of("x", settings)
