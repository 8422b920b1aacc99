"""Fields declared over what is stored, and documents in the order of a field, over HTTP."""

from typing import Any

import httpx
import orjson
import pytest

from tests.service.routes.test_document_routes import DEMO, error_of, listed, put

FIELDS = "/collections/demo/fields"


async def declare(client: httpx.AsyncClient, **fields: str) -> httpx.Response:
    return await client.post(FIELDS, json={"fields": fields})


async def test_a_field_is_declared_while_the_collection_is_served(client: httpx.AsyncClient) -> None:
    await put(client, {"id": "a", "text": "tea", "metadata": {"분류": "차"}}, {"id": "b", "text": "tea"})
    search = {"collection": "demo", "query": "tea", "filter": {"eq": {"분류": "차"}}}
    assert error_of(await client.post("/search", json=search))["code"] == "invalid_filter"
    before = (await client.get("/collections/demo")).json()
    declared = await declare(client, 분류="keyword")
    assert declared.status_code == 200, declared.text
    fields = {**before["fields"], "분류": "keyword"}
    assert declared.json()["fields"] == fields
    assert (await client.get("/collections/demo")).json()["fields"] == fields
    assert (await declare(client, 분류="keyword")).json()["fields"] == fields  # again: nothing changes
    hits = (await client.post("/search", json=search)).json()["hits"]
    assert [hit["id"] for hit in hits] == ["a"]
    grouped = await client.post("/search", json={**search, "group_by": "분류"})
    assert [hit["id"] for hit in grouped.json()["hits"]] == ["a"]
    counted = await client.post(f"{DEMO}/count", json={"filter": {"exists": "분류"}})
    assert counted.json() == {"count": 1}
    refused = await client.put(
        DEMO, json={"documents": [{"id": "c", "text": "tea", "metadata": {"분류": 3}}]}
    )
    assert (refused.status_code, "declared as keyword" in error_of(refused)["message"]) == (422, True)
    assert error_of(refused)["param"] == "documents.0.metadata.분류"


async def test_a_dot_leads_into_nested_metadata(client: httpx.AsyncClient) -> None:
    nested = {"id": "a", "text": "tea", "metadata": {"author": {"name": "Kim"}}}
    await put(client, nested, {"id": "b", "text": "tea", "metadata": {"author.name": "Kim"}})
    assert (await declare(client, **{"author.name": "keyword"})).status_code == 200
    several = {"id": "c", "text": "tea", "metadata": {"author": [{"name": "Lee"}, {"name": "Kim"}]}}
    await put(client, several, {"id": "d", "text": "tea", "metadata": {"author": "Kim"}})
    body = {"filter": {"eq": {"author.name": "Kim"}}}
    found = (await client.get(DEMO, params={"filter": orjson.dumps(body["filter"]).decode()})).json()
    assert [document["id"] for document in found["documents"]] == ["a", "b", "c"]
    wrong = {"id": "e", "text": "tea", "metadata": {"author": {"name": 5}}}
    refused = await client.put(DEMO, json={"documents": [wrong]})
    assert (refused.status_code, error_of(refused)["code"]) == (422, "invalid_document")


async def test_forms_of_one_keyword_are_one_value(client: httpx.AsyncClient) -> None:
    whole, apart = "\ucc28", "\u110e\u1161"  # one syllable, and its letters, as macOS writes names
    await put(
        client,
        {"id": "a", "text": "tea", "metadata": {"kind": whole}},
        {"id": "b", "text": "tea", "metadata": {"kind": apart}},
    )
    for value in (whole, apart):
        for filter in (
            {"eq": {"kind": value}},
            {"and": [{"gte": {"kind": value}}, {"lte": {"kind": value}}]},
        ):
            counted = await client.post(f"{DEMO}/count", json={"filter": filter})
            assert counted.json() == {"count": 2}
    search = {"collection": "demo", "query": "tea", "filter": {"eq": {"kind": apart}}, "facets": {"kind": 3}}
    answer = (await client.post("/search", json=search)).json()
    assert answer["facets"]["kind"]["values"] == [{"value": whole, "count": 2}]
    kept = (await client.get(f"{DEMO}/b")).json()["metadata"]
    assert kept == {"kind": apart}, "metadata stay as they were given"


@pytest.mark.parametrize(
    ("fields", "code", "param", "message"),
    [
        ({"n": "integer"}, "invalid_document", "fields.n", "document 'a': field 'n' is declared as integer"),
        (
            {"year": "keyword"},
            "invalid_field",
            "fields.year",
            "field 'year' is declared as integer, not keyword",
        ),
        ({" n": "keyword"}, "invalid_name", "fields", "without blanks around"),
        ({"n": "text"}, "invalid_value", "fields.n", ""),
        ({}, "invalid_value", "fields", ""),
        (
            {f"f{number}": "keyword" for number in range(100)},
            "invalid_field",
            "fields",
            "the limit is 100: declare those",
        ),
    ],
)
async def test_what_cannot_be_declared_is_refused_by_name(
    client: httpx.AsyncClient, fields: dict[str, str], code: str, param: str, message: str
) -> None:
    await put(client, {"id": "a", "text": "tea", "metadata": {"n": "one"}})
    response = await client.post(FIELDS, json={"fields": fields})
    assert (response.status_code, error_of(response)["code"]) == (422, code), response.text
    assert error_of(response)["param"] == param
    assert message in error_of(response)["message"]
    before = await client.get("/collections/demo")
    assert "n" not in before.json()["fields"]


async def test_an_unknown_collection_is_404(client: httpx.AsyncClient) -> None:
    response = await client.post("/collections/nope/fields", json={"fields": {"n": "integer"}})
    assert (response.status_code, error_of(response)["code"]) == (404, "collection_not_found")


async def test_documents_come_in_the_order_of_a_field(client: httpx.AsyncClient) -> None:
    await client.post(f"{DEMO}/delete", json={"filter": {"not": {"exists": "nothing"}}})
    await client.post(f"{DEMO}/delete", json={"ids": await listed(client)})
    years = {"a": 2001, "b": 1990, "c": None, "d": 1990, "e": 2010}
    await put(client, *({"id": id, "text": "tea", "metadata": {"year": year}} for id, year in years.items()))
    for limit in (1, 2, 100):
        parameters: dict[str, Any] = {"order_by": "year", "limit": limit}
        assert await listed(client, **parameters) == ["b", "d", "a", "e", "c"]
        assert await listed(client, **parameters, order="desc") == ["e", "a", "b", "d", "c"]
        condition = '{"lt": {"year": 2005}}'
        assert await listed(client, **parameters, filter=condition) == ["b", "d", "a"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parameters", "param"),
    [
        ({"order_by": "nope"}, "order_by"),
        ({"order": "desc"}, "order"),
        ({"order_by": "year", "order": "up"}, "order"),
        ({"order_by": "year", "after": "tea"}, "after"),
        ({"order_by": "year", "after": '["x","tea"]'}, "after"),
        ({"order_by": "year", "after": "[1]"}, "after"),
        ({"order_by": "year", "after": '[1,""]'}, "after"),
        ({"order_by": "year", "after": '[9223372036854775808,"a"]'}, "after"),
        ({"order_by": "year", "after": '[1.5,"a"]'}, "after"),
        ({"order_by": "kind", "after": '[1,"a"]'}, "after"),
    ],
)
async def test_bad_orders_are_refused_by_name(
    client: httpx.AsyncClient, parameters: dict[str, str], param: str
) -> None:
    await declare(client, kind="keyword")
    response = await client.get(DEMO, params=parameters)
    assert (response.status_code, error_of(response)["param"]) == (422, param), response.text
