"""The OpenAPI description: complete, valid, and true to what the server answers."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest
from schemathesis.specs.openapi.definitions import OPENAPI_31_VALIDATOR

from tercet.index.documents.filters import MAX_VALUES, parse_filter
from tercet.index.errors import InvalidQueryError
from tercet.service.app import create_app, create_worker_app

pytestmark = pytest.mark.slow

DEMO = Path(__file__).resolve().parents[2] / "examples" / "demo" / "corpus.jsonl"
IMPORT = "POST /collections/{name}/import"  # whose body is a file
OPEN = ("GET /health", "GET /ready", "GET /tei/health")
ERRORS = {
    "tei": "TeiError",
    "cohere": "CohereError",
    "jina": "JinaError",
    "ollama": "OllamaError",
    "dify": "DifyError",
}


def operations(description: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [
        (f"{method.upper()} {path}", operation)
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
    ]


def test_the_description_covers_every_route_of_the_contract(make_app: Any) -> None:
    described = {name for name, _ in operations(make_app().openapi())}
    assert described == {
        "POST /embed",
        "POST /search",
        "GET /search",
        "POST /rerank",
        "GET /collections",
        "GET /collections/{name}",
        "PUT /collections/{name}",
        "DELETE /collections/{name}",
        "GET /collections/{name}/stats",
        "POST /collections/{name}/merge",
        "POST /collections/{name}/fields",
        "GET /collections/{name}/defaults",
        "PUT /collections/{name}/defaults",
        "DELETE /collections/{name}/defaults",
        "PUT /collections/{name}/documents",
        "GET /collections/{name}/documents",
        "POST /collections/{name}/documents/count",
        "POST /collections/{name}/documents/get",
        "POST /collections/{name}/documents/update",
        "POST /collections/{name}/import",
        "POST /collections/{name}/documents/delete",
        "GET /collections/{name}/documents/{document_id}",
        "PATCH /collections/{name}/documents/{document_id}",
        "DELETE /collections/{name}/documents/{document_id}",
        "POST /collections/{name}/backups",
        "GET /collections/{name}/backups",
        "POST /collections/{name}/backups/{backup_id}/restore",
        "DELETE /collections/{name}/backups/{backup_id}",
        "GET /aliases",
        "GET /aliases/{alias}",
        "PUT /aliases/{alias}",
        "DELETE /aliases/{alias}",
        "POST /collections/{name}/jobs",
        "GET /jobs",
        "GET /jobs/{job_id}",
        "DELETE /jobs/{job_id}",
        "GET /health",
        "GET /ready",
        "GET /info",
        "GET /metrics",
        "POST /v1/embeddings",
        "GET /v1/models",
        "GET /v1/models/{model}",
        "POST /tei/embed",
        "POST /tei/embed_sparse",
        "POST /tei/embed_all",
        "POST /tei/v1/embeddings",
        "POST /tei/rerank",
        "POST /tei/tokenize",
        "POST /tei/similarity",
        "POST /tei/decode",
        "GET /tei/info",
        "GET /tei/health",
        "POST /v2/embed",
        "POST /v2/rerank",
        "POST /v1/rerank",
        "POST /jina/v1/embeddings",
        "POST /jina/v1/rerank",
        "POST /jina/v1/multi-vector",
        "POST /api/embed",
        "POST /api/embeddings",
        "GET /api/tags",
        "POST /api/show",
        "GET /api/version",
        "POST /dify/retrieval",
    }
    worker = {name for name, _ in operations(make_app(create=create_worker_app).openapi())}
    assert worker == {
        "POST /embed",
        "GET /tokenizer",
        "GET /health",
        "GET /ready",
        "GET /info",
        "GET /metrics",
    }


def test_every_route_is_described_with_its_errors_and_key(make_app: Any) -> None:
    for create in (create_app, create_worker_app):
        open_operations = operations(make_app(create=create).openapi())
        assert not any("security" in operation for _, operation in open_operations)
        for name, operation in operations(make_app(create=create, api_keys="key").openapi()):
            assert operation["tags"], name
            assert operation["description"], name
            is_open = name in OPEN
            error = ERRORS.get(operation["tags"][0], "ErrorResponse")
            assert ("security" in operation) != is_open, name
            for status, response in operation["responses"].items():
                assert {"X-Request-Id", "Tercet-Version"} <= set(response["headers"]), name
                assert ("Retry-After" in response["headers"]) == (status == "429"), name
                if int(status) >= 400:
                    schema = response["content"]["application/json"]["schema"]
                    assert schema == {"$ref": f"#/components/schemas/{error}"}, name


async def put_demo(client: httpx.AsyncClient) -> None:
    """Puts what the examples of /search name, from the corpus of `tercet demo`, with its fields."""
    corpus = [json.loads(line) for line in DEMO.read_text(encoding="utf-8").splitlines()[:3]]
    fields = {"fields": dict.fromkeys(corpus[0]["metadata"], "keyword")}
    assert (await client.post("/collections/demo/fields", json=fields)).status_code == 200
    put = await client.put("/collections/demo/documents", json={"documents": corpus})
    assert put.status_code == 200, put.text


async def test_the_examples_of_the_description_are_valid(client: httpx.AsyncClient, data: Path) -> None:
    (data / "sources").mkdir()
    (data / "sources" / "articles.jsonl").write_text('{"id": "a", "text": "tea"}\n')
    await put_demo(client)
    description = (await client.get("/openapi.json")).json()
    seen = 0
    for name, operation in operations(description):
        if "requestBody" not in operation:
            continue
        if name == IMPORT:
            assert list(operation["requestBody"]["content"]) == ["application/octet-stream"]
            continue
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        reference = next(part["$ref"] for part in schema.get("anyOf", [schema]) if "$ref" in part)
        for example in description["components"]["schemas"][reference.split("/")[-1]]["examples"]:
            method, path = name.split(" ")
            for parameter, value in (("name", "example"), ("alias", "second"), ("document_id", "tea")):
                path = path.replace(f"{{{parameter}}}", value)
            if "{backup_id}" in path:
                path = path.replace(
                    "{backup_id}", (await client.post("/collections/example/backups")).json()["id"]
                )
            response = await client.request(method, path, json=example)
            assert response.status_code < 300, (name, response.text)
            if response.status_code == 202:
                await client.delete(f"/jobs/{response.json()['id']}")
            seen += 1
    assert seen == 13 + 24


def schemas_of(value: Any) -> Iterator[dict[str, Any]]:
    """Every object within a description."""
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from schemas_of(inner)


@pytest.mark.parametrize("create", [create_app, create_worker_app])
def test_the_description_is_valid_and_gives_bounds_by_their_standard_names(
    make_app: Any, create: Any
) -> None:
    description = make_app(create=create).openapi()
    OPENAPI_31_VALIDATOR.validate(description)
    for schema in schemas_of(description):
        assert not any(isinstance(schema.get(name), int | float) for name in ("ge", "gt", "le", "lt")), schema


def test_bounds_of_integers_are_described(description: dict[str, Any]) -> None:
    schemas = description["components"]["schemas"]
    assert schemas["SearchRequest"]["properties"]["top_k"]["anyOf"][0]["minimum"] == 1
    effort = schemas["SearchOptions"]["properties"]["nprobe"]["anyOf"][0]
    assert effort == {"type": "integer", "minimum": 1, "maximum": 100_000}
    token_id = schemas["SparseQuery"]["properties"]["token_ids"]["items"]
    assert token_id == {"type": "integer", "minimum": 0, "exclusiveMaximum": 2**31}


def test_an_operation_is_called_as_its_handler(make_app: Any, description: dict[str, Any]) -> None:
    for create in (create_app, create_worker_app):
        app = make_app(create=create)
        ids = [operation["operationId"] for _, operation in operations(app.openapi())]
        assert len(ids) == len(set(ids))
        assert all(identifier.isidentifier() for identifier in ids)
    described = dict(operations(description))
    assert described["POST /search"]["operationId"] == "search"
    assert described["PUT /collections/{name}"]["operationId"] == "create_collection"


LEAF = {"eq": {"lang": "en"}}


@pytest.mark.parametrize(
    ("tree", "valid"),
    [
        (LEAF, True),
        ({"and": [LEAF, {"or": [{"not": LEAF}, {"exists": "year"}]}]}, True),
        ({"in": {"year": [1, 2.5, True, "x"]}}, True),
        ({"in": {"year": []}}, True),
        *(({name: {"year": 1990}}, True) for name in ("gte", "gt", "lte", "lt")),
        ({"and": []}, False),
        ({"and": LEAF}, False),
        ({"or": [None]}, False),
        ({"not": [LEAF]}, False),
        ({**LEAF, "exists": "lang"}, False),
        ({}, False),
        ([], False),
        ({"eq": {"lang": "en", "year": 1}}, False),
        ({"eq": {}}, False),
        ({"eq": {"lang": None}}, False),
        ({"eq": {"lang": ["en"]}}, False),
        ({"in": {"lang": "en"}}, False),
        ({"in": {"lang": list(range(MAX_VALUES + 1))}}, False),
        ({"exists": 1}, False),
        ({"near": {"lang": "en"}}, False),
    ],
)
def test_the_described_filter_is_the_one_that_is_parsed(
    description: dict[str, Any], tree: Any, valid: bool
) -> None:
    schema = {"$ref": "#/components/schemas/Filter", "components": description["components"]}
    assert jsonschema.Draft202012Validator(schema).is_valid(tree) == valid
    if valid:
        parse_filter(tree)
    else:
        with pytest.raises(InvalidQueryError):
            parse_filter(tree)


@pytest.mark.parametrize("create", [create_app, create_worker_app])
def test_every_operation_has_an_example_of_its_answer(make_app: Any, create: Any) -> None:
    description = make_app(create=create).openapi()
    for name, operation in operations(description):
        success = min(status for status in operation["responses"] if status.startswith("2"))
        shown = [each for each in operation["responses"][success].get("content", {}).values() if each]
        if success == "204" or name == "GET /tei/health":  # they answer nothing
            assert not shown
            continue
        (described,) = [each for each in shown if "example" in each]
        schema = {**described["schema"], "components": description["components"]}
        jsonschema.Draft202012Validator(schema).validate(described["example"])
        assert described["example"], name


async def test_the_limits_that_are_told_are_described(
    client: httpx.AsyncClient, description: dict[str, Any]
) -> None:
    told = (await client.get("/info")).json()["limits"]
    assert told["queries"] == 100
    described = description["components"]["schemas"]["LimitsResponse"]
    assert set(told) == set(described["properties"]) == set(described["required"])
