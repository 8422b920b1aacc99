"""Fields under their former names: they do what their successors do, and the answer says that they go."""

from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from tercet.service.app import create_app
from tercet.service.settings.settings import Settings

ROOT = Path(__file__).resolve().parents[3]
TEXTS = ["Green tea is brewed.", "A steam engine.", "Yeast."]


def error_of(answer: httpx.Response) -> tuple[int, str, str | None]:
    error = answer.json()["error"]
    return answer.status_code, error["code"], error["param"]


def deprecated_names() -> set[str]:
    """Those of all fields that the description calls deprecated."""
    schemas = create_app(Settings()).openapi()["components"]["schemas"].values()
    return {
        name
        for schema in schemas
        for name, field in schema.get("properties", {}).items()
        if field.get("deprecated")
    }


@pytest.mark.parametrize("page", ["docs/stability.md", "docs/ko/stability.md"])
def test_the_page_names_what_is_deprecated(page: str) -> None:
    rows = (ROOT / page).read_text("utf-8").splitlines()
    listed = {row.split("`")[1] for row in rows if row.startswith("| `")}
    assert deprecated_names() == listed


async def test_the_former_names_of_rerank_do_what_the_names_do(client: httpx.AsyncClient) -> None:
    new = await client.post("/rerank", json={"query": "tea", "inputs": TEXTS, "top_k": 2})
    old = await client.post("/rerank", json={"query": "tea", "documents": TEXTS, "top_n": 2})
    assert new.status_code == old.status_code == 200
    assert new.json() == old.json()
    assert len(new.json()["results"]) == 2
    assert "deprecation" not in new.headers
    since = int(old.headers["deprecation"].removeprefix("@"))
    assert datetime.fromtimestamp(since).year == 2026


async def test_a_field_and_its_former_name_are_not_taken_together(client: httpx.AsyncClient) -> None:
    for extra, former in (({"documents": TEXTS}, "documents"), ({"top_k": 1, "top_n": 1}, "top_n")):
        answer = await client.post("/rerank", json={"query": "tea", "inputs": TEXTS, **extra})
        assert error_of(answer) == (422, "invalid_value", former)
    both = {"model": "tiny", "encoder": "tiny"}
    assert error_of(await client.put("/collections/new", json=both)) == (422, "invalid_value", "encoder")
    job = {"source": "tea.jsonl", **both}
    assert error_of(await client.post("/collections/demo/jobs", json=job)) == (
        422,
        "invalid_value",
        "encoder",
    )
    assert (
        await client.post("/rerank", json={"query": "tea", "inputs": TEXTS, "documents": None})
    ).is_success


async def test_errors_name_the_field_as_it_was_given(client: httpx.AsyncClient) -> None:
    long = "a" * 200_001
    for name in ("inputs", "documents"):
        answer = await client.post("/rerank", json={"query": "tea", name: ["a", long]})
        assert error_of(answer) == (422, "too_many_characters", f"{name}.1")
        answer = await client.post("/rerank", json={"query": "tea", name: ["a", 5]})
        assert error_of(answer) == (422, "invalid_value", f"{name}.1")
        answer = await client.post("/rerank", json={"query": "tea", name: ["a"] * 1025})
        assert error_of(answer) == (413, "request_too_large", name)
    assert error_of(await client.post("/rerank", json={"query": "tea"})) == (422, "missing_field", "inputs")


async def test_collections_and_jobs_take_a_model(client: httpx.AsyncClient, data: Path) -> None:
    made: dict[str, Any] = {}
    for name in ("model", "encoder"):
        answer = await client.put(f"/collections/by-{name}", json={name: "tiny"})
        assert answer.status_code == 201, answer.text
        assert ("deprecation" in answer.headers) == (name == "encoder")
        made[name] = answer.json()
        assert made[name]["model"] == made[name]["encoder"] == "tiny"
        unknown = await client.put("/collections/none", json={name: "unknown"})
        assert error_of(unknown) == (404, "model_not_found", name)
    assert {**made["model"], "name": ""} == {**made["encoder"], "name": ""}
    (data / "sources").mkdir()
    (data / "sources" / "tea.jsonl").write_text('{"id": "a", "text": "tea"}\n')
    for name in ("model", "encoder"):
        job = await client.post("/collections/demo/jobs", json={"source": "tea.jsonl", name: "other"})
        assert error_of(job)[:2] == (409, "fingerprint_mismatch")


async def test_backups_say_when_they_were_made_by_both_names(client: httpx.AsyncClient) -> None:
    made = (await client.post("/collections/demo/backups")).json()
    (listed,) = (await client.get("/collections/demo/backups")).json()["backups"]
    assert made == listed
    assert made["created_at"] == made["created"]
