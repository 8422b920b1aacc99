"""`boosts` of `POST /search`: part of the score, told apart in the answer, refused by name."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

EARLY = {"filter": {"lt": {"year": 1900}}, "add": 0.5}
NEAR = {"field": "year", "decay": "exp", "origin": 2000, "scale": 10, "add": -0.25}


async def ask(client: httpx.AsyncClient, **body: Any) -> dict[str, Any]:
    response = await client.post("/search", json={"collection": "demo", "query": "how is tea made", **body})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def added(year: int | None) -> float:
    """What EARLY and NEAR add by hand."""
    if year is None:
        return 0.0
    return 0.5 * (year < 1900) + round(-0.25 * 0.5 ** (abs(year - 2000) / 10), 6)


async def test_boosts_are_part_of_the_score(client: httpx.AsyncClient) -> None:
    plain = (await ask(client, top_k=10))["hits"]
    hits = (await ask(client, top_k=10, boosts=[EARLY, NEAR], explain=True))["hits"]
    before = {hit["id"]: hit for hit in plain}
    assert before.keys() == {hit["id"] for hit in hits}
    assert {hit["scores"]["boost"] for hit in hits} > {0.5}
    for hit in hits:
        former = before[hit["id"]]
        boost = added(hit["metadata"].get("year"))
        assert hit["scores"] == {**former["scores"], "boost": pytest.approx(boost, abs=1e-9)}
        assert hit["score"] == pytest.approx(former["score"] + boost, abs=1e-9)
        assert sum(hit["explanation"]["boosts"]) == pytest.approx(boost, abs=1e-9)
    assert [hit["id"] for hit in hits] == sorted(
        before, key=lambda id: (-before[id]["score"] - added(before[id]["metadata"].get("year")), id)
    )
    assert "boost" not in plain[0]["scores"]


async def test_null_parts_of_a_boost_are_the_defaults(client: httpx.AsyncClient) -> None:
    explicit = {**NEAR, "offset": None, "at_scale": None}
    assert (await ask(client, boosts=[explicit]))["hits"] == (await ask(client, boosts=[NEAR]))["hits"]
    assert (await ask(client, boosts=[]))["hits"] == (await ask(client, boosts=None))["hits"]


@pytest.mark.parametrize(
    ("boosts", "param", "code", "named"),
    [
        ({}, "boosts", "invalid_value", "use a list"),
        (["x"], "boosts.0", "invalid_value", ""),
        ([EARLY] * 33, "boosts", "invalid_value", "use at most 32 items"),
        ([EARLY, {"filter": {"lt": {"year": 1900}}}], "boosts.1", "invalid_value", "add is missing; give it"),
        (
            [{"add": 1}],
            "boosts.0",
            "invalid_value",
            "filter and field are missing; give filter, or field with",
        ),
        ([{**EARLY, "add": "much"}], "boosts.0", "invalid_value", 'add is "much"; use a number'),
        ([{**EARLY, "add": True}], "boosts.0", "invalid_value", "add is true; use a number"),
        ([{**EARLY, "add": 1e7}], "boosts.0", "invalid_value", "add is 10000000.0; use a number within"),
        ([{**EARLY, "filter": {}}], "boosts.0", "invalid_value", "exactly one key"),
        ([{**EARLY, "filter": {"eq": {"size": 1}}}], "boosts.0", "invalid_value", "'size' is not declared"),
        ([{**NEAR, "weight": 1}], "boosts.0", "invalid_value", '"weight" is no part of it; use field, decay'),
        ([{**NEAR, "field": "kind"}], "boosts.0", "invalid_value", "'kind' is keyword; such fields: year"),
        ([{**NEAR, "decay": "log"}], "boosts.0", "invalid_value", 'decay is "log"; use exp, linear, gauss'),
        ([{**NEAR, "origin": "2026-01-01"}], "boosts.0", "invalid_value", "the field is integer"),
        ([{**NEAR, "scale": -1}], "boosts.0", "invalid_value", "scale is -1; use more than 0"),
        ([{**NEAR, "at_scale": 0}], "boosts.0", "invalid_value", "at_scale is 0; use a number between"),
    ],
)
async def test_bad_boosts_are_refused_by_name(
    client: httpx.AsyncClient, boosts: Any, param: str, code: str, named: str
) -> None:
    body = {"collection": "demo", "query": "tea", "boosts": boosts}
    response = await client.post("/search", json=body)
    error = response.json()["error"]
    assert (response.status_code, error["param"], error["code"]) == (422, param, code), error
    assert named in error["message"]


async def test_a_number_that_json_does_not_have_is_refused(client: httpx.AsyncClient) -> None:
    body = b'{"collection": "demo", "query": "tea", "boosts": [{"filter": {"exists": "year"}, "add": NaN}]}'
    response = await client.post("/search", content=body, headers={"Content-Type": "application/json"})
    assert response.status_code == 400
