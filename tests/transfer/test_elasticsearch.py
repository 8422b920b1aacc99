"""Elasticsearch: requests of the documented shapes, to a server that refuses others, and into files.

There is no Elasticsearch here. The server takes what the reference of its index, bulk and search APIs
describes; the printed query's scores are computed as that reference defines them.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from tercet.transfer.elasticsearch import ElasticsearchTarget
from tercet.transfer.errors import TargetExistsError, TransferError
from tercet.transfer.push import export
from tercet.transfer.rest import RestServer

pytestmark = pytest.mark.slow

VECTOR = {"type": "array", "items": {"type": "number"}}
FEATURES = {
    "type": "object",
    "propertyNames": {"pattern": "^[^.]+$"},
    "additionalProperties": {"type": "number", "exclusiveMinimum": 0},
}
DENSE = {
    "type": "object",
    "properties": {
        "type": {"const": "dense_vector"},
        "dims": {"type": "integer", "minimum": 1, "maximum": 4096},
        "index": {"type": "boolean"},
        "similarity": {"enum": ["l2_norm", "dot_product", "cosine", "max_inner_product"]},
        "index_options": {"type": "object", "required": ["type"]},
    },
    "required": ["type", "dims"],
    "additionalProperties": False,
}
MAPPING = {
    "type": "object",
    "properties": {
        "mappings": {
            "type": "object",
            "properties": {
                "_meta": {"type": "object"},
                "dynamic": {"enum": [True, False, "strict", "runtime"]},
                "properties": {
                    "type": "object",
                    "properties": {
                        "title": {"properties": {"type": {"const": "text"}}},
                        "text": {"properties": {"type": {"const": "text"}}},
                        "metadata": {"properties": {"type": {"const": "object"}}},
                        "dense": DENSE,
                        "windows": {
                            "properties": {
                                "type": {"const": "nested"},
                                "properties": {"type": "object", "properties": {"dense": DENSE}},
                            }
                        },
                        "sparse": {"properties": {"type": {"const": "sparse_vector"}}},
                        "colbert": {
                            "properties": {"type": {"const": "rank_vectors"}, "dims": {"type": "integer"}},
                            "additionalProperties": False,
                        },
                    },
                    "additionalProperties": False,
                },
            },
            "additionalProperties": False,
        }
    },
    "additionalProperties": False,
}
ACTION = {
    "type": "object",
    "properties": {
        "index": {
            "type": "object",
            "properties": {"_id": {"type": "string", "maxLength": 512}},
            "required": ["_id"],
            "additionalProperties": False,
        }
    },
    "required": ["index"],
    "additionalProperties": False,
}
SOURCE = {
    "type": "object",
    "properties": {
        "title": {"type": ["string", "null"]},
        "text": {"type": "string"},
        "metadata": {"type": "object"},
        "sparse": FEATURES,
        "dense": VECTOR,
        "windows": {"type": "array", "items": {"type": "object", "required": ["start", "end", "dense"]}},
        "colbert": {"type": "array", "items": VECTOR},
    },
    "required": ["text", "sparse"],
    "additionalProperties": False,
}
QUERY: dict[str, Any] = {
    "type": "object",
    "minProperties": 1,
    "maxProperties": 1,
    "properties": {
        "bool": {"properties": {"should": {"type": "array", "items": {"$ref": "#/$defs/query"}}}},
        "match_all": {"type": "object"},
        "nested": {
            "required": ["path", "query"],
            "properties": {
                "path": {"type": "string"},
                "score_mode": {"enum": ["avg", "max", "min", "none", "sum"]},
                "query": {"$ref": "#/$defs/query"},
            },
            "additionalProperties": False,
        },
        "knn": {
            "required": ["field", "query_vector"],
            "properties": {
                "field": {"type": "string"},
                "query_vector": VECTOR,
                "k": {"type": "integer"},
                "num_candidates": {"type": "integer", "maximum": 10_000},
            },
            "additionalProperties": False,
        },
        "sparse_vector": {
            "required": ["field", "query_vector"],
            "properties": {
                "field": {"type": "string"},
                "query_vector": FEATURES,
                "prune": {"type": "boolean"},
                "boost": {"type": "number", "minimum": 0},
            },
            "additionalProperties": False,
        },
        "script_score": {
            "required": ["query", "script"],
            "properties": {
                "query": {"$ref": "#/$defs/query"},
                "script": {"required": ["source"], "properties": {"params": {"type": "object"}}},
            },
            "additionalProperties": False,
        },
    },
    "additionalProperties": False,
}
SEARCH = {
    "$defs": {"query": QUERY},
    "type": "object",
    "properties": {
        "size": {"type": "integer"},
        "_source": {"type": "array"},
        "query": {"$ref": "#/$defs/query"},
        "rescore": {
            "required": ["query"],
            "properties": {
                "window_size": {"type": "integer"},
                "query": {
                    "required": ["rescore_query"],
                    "properties": {
                        "rescore_query": {"$ref": "#/$defs/query"},
                        "query_weight": {"type": "number"},
                        "rescore_query_weight": {"type": "number"},
                    },
                    "additionalProperties": False,
                },
            },
            "additionalProperties": False,
        },
    },
    "additionalProperties": False,
}


class Elastic:
    """What a server holds. busy: documents that it takes at the second asking only."""

    def __init__(self) -> None:
        self.mapping: Any = None
        self.documents: dict[str, Any] = {}
        self.busy: set[str] = set()
        self.refuse: str | None = None
        self.unavailable = 0
        self.key: str | None = None
        self.calls: list[str] = []

    def bulk(self, body: bytes) -> dict[str, Any]:
        assert body.endswith(b"\n")
        lines = body.split(b"\n")[:-1]
        items = []
        for action, source in zip(lines[::2], lines[1::2], strict=True):
            jsonschema.validate(json.loads(action), ACTION)
            jsonschema.validate(json.loads(source), SOURCE)
            identifier = json.loads(action)["index"]["_id"]
            if identifier in self.busy:
                self.busy.remove(identifier)
                items.append({"index": {"_id": identifier, "status": 429, "error": {"reason": "full"}}})
            elif identifier == self.refuse:
                error = {"type": "document_parsing_exception", "reason": "no such thing"}
                items.append({"index": {"_id": identifier, "status": 400, "error": error}})
            else:
                self.documents[identifier] = json.loads(source)
                items.append({"index": {"_id": identifier, "status": 201}})
        return {"errors": any(item["index"]["status"] >= 300 for item in items), "items": items}


@pytest.fixture
def elastic() -> Iterator[tuple[Elastic, str]]:
    held = Elastic()

    class Handler(BaseHTTPRequestHandler):
        def answer(self, status: int, body: Any = None) -> None:
            content = b"" if body is None else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            held.calls.append(f"{self.command} {self.path}")
            if held.key is not None and self.headers.get("Authorization") != f"ApiKey {held.key}":
                self.answer(401, {"error": {"reason": "missing authentication credentials"}})
            elif held.unavailable:
                held.unavailable -= 1
                self.answer(503)
            elif self.path == "/docs" and self.command == "PUT":
                jsonschema.validate(json.loads(body), MAPPING)
                held.mapping = json.loads(body)
                self.answer(200, {"acknowledged": True})
            elif self.path == "/docs" and self.command in ("HEAD", "DELETE"):
                found = held.mapping is not None
                if self.command == "DELETE":
                    held.mapping, held.documents = None, {}
                self.answer(200 if found else 404)
            elif self.path == "/docs/_mapping":
                self.answer(200, {"docs": held.mapping})
            elif self.path == "/docs/_bulk" and self.command == "POST":
                assert self.headers["Content-Type"] == "application/x-ndjson"
                self.answer(200, held.bulk(body))
            elif self.path == "/docs/_refresh" and self.command == "POST":
                self.answer(200, {})
            else:
                self.answer(400, {"error": {"reason": f"no {self.command} {self.path}"}})

        do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = handle_any  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield held, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def target_at(url: str, settings: Any, key: str | None = None) -> ElasticsearchTarget:
    server = RestServer("Elasticsearch", url, None if key is None else f"ApiKey {key}")
    return ElasticsearchTarget("docs", settings, 10, server=server)


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _seconds: None)


@pytest.mark.usefixtures("no_pauses")
def test_push(make: Any, elastic: tuple[Elastic, str]) -> None:
    held, url = elastic
    snapshot = make("plain").snapshot()
    held.busy, held.unavailable = {"d/20 é", "d/21 é"}, 1
    assert export(snapshot, target_at(url, snapshot.settings)) == 57
    assert len(held.documents) == 57
    document, stored = snapshot.get("d/20 é"), snapshot.stored("d/20 é")[1]
    assert document is not None
    assert stored is not None
    assert stored.colbert is not None
    found = held.documents["d/20 é"]
    assert (found["title"], found["text"], found["metadata"]) == (
        document.title,
        document.text,
        document.metadata,
    )
    assert np.array_equal(np.array(found["dense"], np.float32), stored.dense[0])
    assert np.array_equal(np.array(found["colbert"], np.float32), stored.colbert.vectors)
    ids, weights = stored.sparse.row(0)
    assert found["sparse"] == pytest.approx(dict(zip(map(str, ids.tolist()), weights.tolist(), strict=True)))
    fields = held.mapping["mappings"]["properties"]["metadata"]
    assert fields["properties"] == {"year": {"type": "long"}, "kind": {"type": "keyword"}}
    with pytest.raises(TargetExistsError, match="Elasticsearch index 'docs' exists"):
        export(snapshot, target_at(url, snapshot.settings))
    assert export(snapshot, target_at(url, snapshot.settings), resume=True) == 57
    other = make("idf").snapshot()
    with pytest.raises(TargetExistsError, match="another bm25, bm25_reading, fields, lexical"):
        export(other, target_at(url, other.settings), resume=True)
    assert export(other, target_at(url, other.settings), overwrite=True) == 57
    assert held.calls[-1] == "POST /docs/_refresh"


def test_refusals_name_the_document_and_what_is_there(make: Any, elastic: tuple[Elastic, str]) -> None:
    held, url = elastic
    snapshot = make("plain").snapshot()
    held.refuse = "d/25 é"
    expected = "refused document 'd/25 é': no such thing; Elasticsearch index 'docs' has at least 10"
    with pytest.raises(TransferError, match=expected):
        export(snapshot, target_at(url, snapshot.settings))
    held.key = "right"
    with pytest.raises(TransferError, match="answered 401 to HEAD /docs"):
        export(snapshot, target_at(url, snapshot.settings, "wrong"))
    held.refuse = None
    assert export(snapshot, target_at(url, snapshot.settings, "right"), resume=True) == 57
    with pytest.raises(TransferError, match="does not answer"):
        export(snapshot, target_at("http://127.0.0.1:1", snapshot.settings))
    with pytest.raises(TransferError, match=r"give one such as http://127.0.0.1:9200"):
        target_at("localhost:9200", snapshot.settings)


@pytest.mark.parametrize("kind", ["idf", "windows", "none"])
def test_the_printed_query_scores_as_we_do(
    make: Any, tmp_path: Path, queries: list[str], ask: Any, hits: Any, kind: str
) -> None:
    snapshot, folder = make(kind).snapshot(), tmp_path / "es"
    target = ElasticsearchTarget("docs", snapshot.settings, 10, folder=folder)
    assert export(snapshot, target) == 57
    jsonschema.validate(json.loads((folder / "index.json").read_text()), MAPPING)
    held = Elastic()
    for part in sorted(folder.glob("bulk-*.ndjson")):
        assert not held.bulk(part.read_bytes())["errors"]
    for text in queries[:5]:
        script = target.query(ask(snapshot, text))
        body = json.loads(script.splitlines()[-2])
        jsonschema.validate(body, SEARCH)
        assert body["query"]["bool"]["should"][0]
        offset = float(script.splitlines()[1].rsplit(" ", 1)[1])
        rescore = body["rescore"]["query"]["rescore_query"]
        for hit in hits(snapshot, text):
            found = score(rescore, held.documents[hit.document.id]) - offset
            if kind == "windows":  # late interaction over all windows is at least that of the best
                assert found >= hit.score - 1e-5
            else:
                assert found == pytest.approx(hit.score, abs=1e-5)
    with pytest.raises(TargetExistsError, match="give --overwrite"):
        export(snapshot, target)
    with pytest.raises(TransferError, match="leave --resume out"):
        export(snapshot, target, resume=True)
    assert (
        export(snapshot, ElasticsearchTarget("docs", snapshot.settings, 10, folder=folder), overwrite=True)
        == 57
    )
    (tmp_path / "mine").mkdir()
    with pytest.raises(TransferError, match="is no folder of an export, and was left alone"):
        export(
            snapshot,
            ElasticsearchTarget("docs", snapshot.settings, 10, folder=tmp_path / "mine"),
            overwrite=True,
        )


def score(query: dict[str, Any], source: dict[str, Any]) -> float:
    """The score of a document by the clauses that printed queries use."""
    ((kind, body),) = query.items()
    if kind == "bool":
        return sum(score(each, source) for each in body["should"])
    if kind == "nested":
        assert body["score_mode"] == "max"
        return max(score(body["query"], {f"windows.{name}": value for name, value in each.items()})
                   for each in source[body["path"]])  # fmt: skip
    if kind == "sparse_vector":
        weights = source[body["field"]]
        products = (weight * weights.get(term, 0.0) for term, weight in body["query_vector"].items())
        return float(body["boost"]) * sum(products)
    assert kind == "script_score"
    params = body["script"]["params"]
    query_vectors = np.array(params["query"])
    script = body["script"]["source"]
    if "maxSimDotProduct" in script:
        similar = (query_vectors @ np.array(source["colbert"]).T).max(axis=1).sum()
        assert (
            script
            == f"params.weight * (maxSimDotProduct(params.query, 'colbert') / {len(query_vectors)} + 1)"
        )
        return float(params["weight"] * (similar / len(query_vectors) + 1))
    field = script.split("'")[1]
    assert script == f"params.weight * (dotProduct(params.query, '{field}') + 1)"
    return float(params["weight"] * (query_vectors @ np.array(source[field]) + 1))
