"""Keys: nobody, readers, writers."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tercet.service.app import create_app
from tercet.service.exceptions import UnauthenticatedError
from tercet.service.keys.access import EVERYTHING, RIGHTS, Access
from tercet.service.keys.keys import digest_of
from tercet.service.requests.keys import KeyRing, keys_of
from tercet.service.settings.settings import Settings

WRITER = {"Authorization": "Bearer write-key"}
READER = {"Authorization": "bearer read-key"}
KEYS = {"api_keys": "write-key, second-key", "read_keys": "read-key"}


@pytest.mark.parametrize(
    "header",
    [None, "", "Bearer", "Bearer ", "Bearer wrong", "Basic write-key", "write-key", "Bearer write-ke\xff"],
)
async def test_without_a_known_key_only_health_and_ready_answer(make_client: Any, header: str | None) -> None:
    headers = None if header is None else {b"Authorization": header.encode("latin-1")}
    async with make_client(**KEYS) as client:
        assert (await client.get("/health", headers=headers)).status_code == 200
        assert (await client.get("/ready", headers=headers)).status_code == 200
        assert (await client.get("/docs", headers=headers)).status_code == 200
        for method, path in [
            ("POST", "/search"),
            ("GET", "/collections"),
            ("GET", "/metrics"),
            ("GET", "/info"),
            ("GET", "/openapi.json"),
            ("GET", "/nowhere"),
        ]:
            response = await client.request(method, path, headers=headers)
            assert response.status_code == 401
            assert response.headers["WWW-Authenticate"] == "Bearer"
            assert response.json()["error"]["type"] == "unauthenticated"


async def test_a_read_key_searches_but_changes_nothing(make_client: Any) -> None:
    async with make_client(READER, **KEYS) as client:
        assert (await client.post("/search", json={"collection": "demo", "query": "tea"})).status_code == 200
        assert (await client.post("/embed", json={"inputs": "tea"})).status_code == 200
        assert (await client.get("/metrics")).status_code == 200
        for method, path in [
            ("PUT", "/collections/other"),
            ("DELETE", "/collections/demo"),
            ("POST", "/collections/demo/jobs"),
            ("DELETE", "/jobs/any"),
        ]:
            response = await client.request(method, path, json={"source": "x"} if method == "POST" else None)
            assert response.status_code == 403
            assert response.json()["error"]["code"] == "read_only_key"
        assert (await client.get("/collections/demo")).status_code == 200


@pytest.mark.parametrize("key", ["write-key", "second-key"])
async def test_a_write_key_may_do_everything(make_client: Any, key: str) -> None:
    async with make_client({"Authorization": f"Bearer {key}"}, **KEYS) as client:
        assert (await client.put("/collections/other")).status_code == 201
        assert (await client.delete("/collections/demo")).status_code == 204


async def test_read_keys_alone_leave_nobody_who_may_change(make_client: Any) -> None:
    async with make_client(READER, read_keys="read-key") as client:
        assert (await client.put("/collections/other")).status_code == 403


def test_a_key_in_both_lists_may_do_everything_and_the_file_counts_before_both() -> None:
    known = keys_of(Settings.model_validate({"api_keys": "both", "read_keys": "both"}))
    ring = KeyRing(known)
    assert ring.access("Bearer both").right == "admin"
    with pytest.raises(UnauthenticatedError):
        ring.access("Bearer bot")
    assert KeyRing({}).access(None) == EVERYTHING
    ring = KeyRing(known, {digest_of("both"): Access("read", "team")})
    assert ring.access("Bearer both") == Access("read", "team")
    ring.take_up({})
    assert ring.access("Bearer both").right == "admin"


def test_a_file_of_keys_never_opens_a_server() -> None:
    ring = KeyRing({}, {})
    with pytest.raises(UnauthenticatedError):
        ring.access(None)


@pytest.fixture
def limited(tmp_path: Path) -> Path:
    """A file of keys that may use `a*` alone, each with another access, and one that may use nothing."""
    path = tmp_path / "keys.jsonl"
    lines = [{"key": right, "access": right, "collections": ["a*"]} for right in RIGHTS]
    lines.append({"key": "nothing", "access": "admin", "collections": []})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def refused(answer: httpx.Response) -> tuple[int, str, str | None]:
    error = answer.json()["error"]
    return answer.status_code, error["code"], error["param"]


async def test_a_name_that_is_not_there_is_answered_with_those_that_a_key_sees(
    make_client: Any, limited: Path
) -> None:
    async with make_client(WRITER, **KEYS, keys_file=limited) as client:
        for name in ("abc", "b"):
            assert (await client.put(f"/collections/{name}")).status_code == 201
        for path, body in (("/search", {"collection": "abd", "query": "tea"}), ("/collections/abd", None)):
            answer = await client.request("GET" if body is None else "POST", path, json=body)
            message = "collection 'abd' does not exist; create or build it first, or did you mean abc?"
            assert (answer.status_code, answer.json()["error"]["message"]) == (404, message)
        for key, others in (("write-key", "abc, b, demo"), ("read", "abc")):
            answer = await client.get("/collections/axyz", headers=bearer(key))
            assert answer.json()["error"]["message"].endswith(f"; there are {others}")


@pytest.mark.slow
async def test_rights_go_by_what_a_route_changes(make_client: Any, limited: Path) -> None:
    async with make_client(WRITER, **KEYS, keys_file=limited) as client:
        assert (await client.put("/collections/a")).status_code == 201
        described = (await client.get("/openapi.json")).json()["paths"]
        changing = {
            f"{method.upper()} {path}"
            for path, methods in described.items()
            for method, operation in methods.items()
            if not {"openai", "tei", "cohere", "jina", "ollama", "dify"} & set(operation["tags"])
            and not (method == "get" or path in ("/embed", "/search", "/rerank"))
        }
        reading = {f"POST /collections/{{name}}/documents/{what}" for what in ("count", "get")}
        writing = {
            "PUT /collections/{name}/documents",
            "POST /collections/{name}/documents/update",
            "POST /collections/{name}/documents/delete",
            "PATCH /collections/{name}/documents/{document_id}",
            "DELETE /collections/{name}/documents/{document_id}",
            "POST /collections/{name}/import",
        }
        assert reading | writing < changing
        for name in sorted(changing):
            method, path = name.split(" ")
            path = path.format(name="a", alias="a", document_id="d", job_id="j", backup_id="b")
            codes = {}
            for right in RIGHTS:
                answer = await client.request(method, path, json={}, headers=bearer(right))
                codes[right] = answer.json()["error"]["code"] if answer.status_code == 403 else None
            expected = {
                "read": None if name in reading else "read_only_key",
                "write": None if name in reading | writing else "admin_key_required",
                "admin": None,
            }
            assert codes == expected, name


@pytest.mark.slow
async def test_every_path_with_a_name_is_for_keys_that_may_use_it(make_client: Any, limited: Path) -> None:
    async with make_client(WRITER, **KEYS, keys_file=limited) as client:
        described = (await client.get("/openapi.json")).json()["paths"]
        seen = 0
        for path, methods in described.items():
            if "{name}" not in path and "{alias}" not in path:
                continue
            path = path.format(name="demo", alias="demo", document_id="tea", backup_id="b")
            for method in methods:
                body = {"json": {}} if method in ("put", "post", "patch") else {}
                for key in ("admin", "nothing"):
                    answer = await client.request(method, path, headers=bearer(key), **body)
                    assert refused(answer) == (403, "collection_not_allowed", None), (method, path)
                seen += 1
        assert seen >= 22
        binary = {"Content-Type": "application/x-safetensors"}
        answer = await client.put(
            "/collections/demo/documents", content=b"x", headers={**bearer("admin"), **binary}
        )
        assert refused(answer) == (403, "collection_not_allowed", None)
        assert (await client.get("/collections/demo")).status_code == 200


@pytest.mark.slow
def test_no_other_body_names_a_collection() -> None:
    """Else the test below is to have it, too, and its route to check it."""
    schemas = create_app(Settings()).openapi()["components"]["schemas"]
    named = {name for name, each in schemas.items() if "collection" in each.get("properties", {})}
    assert {name for name in named if name.endswith("Request")} == {
        "SearchRequest",
        "RerankRequest",
        "AliasRequest",
    }


async def test_names_in_bodies_are_for_keys_that_may_use_them(make_client: Any, limited: Path) -> None:
    async with make_client(bearer("admin"), keys_file=limited) as client:
        for padding in ("", " " * (1 << 17)):  # read by the edge itself, and by the framework
            content = f'{padding}{{"collection": "demo", "query": "tea"}}'
            json_type = {"Content-Type": "application/json"}
            answer = await client.post("/search", content=content, headers=json_type)
            assert refused(answer) == (403, "collection_not_allowed", "collection")
        document = {"query": "tea", "inputs": ["tea"]}
        answer = await client.post("/rerank", json={**document, "collection": "demo"})
        assert refused(answer) == (403, "collection_not_allowed", "collection")
        assert (await client.post("/rerank", json=document)).status_code == 200
        assert (await client.post("/embed", json={"inputs": "tea"}, headers=bearer("nothing"))).is_success
        answer = await client.put("/aliases/a-demo", json={"collection": "demo"})
        assert refused(answer) == (403, "collection_not_allowed", "collection")
        assert (await client.put("/collections/a")).status_code == 201
        backup = (await client.post("/collections/a/backups")).json()["id"]
        answer = await client.post(f"/collections/a/backups/{backup}/restore", json={"name": "b"})
        assert refused(answer) == (403, "collection_not_allowed", "name")


async def test_lists_show_what_a_key_may_use_and_an_alias_is_a_name(
    make_client: Any, limited: Path, data: Path
) -> None:
    (data / "sources").mkdir()
    (data / "sources" / "tea.jsonl").write_text('{"id": "a", "text": "tea"}\n')
    reader, search = bearer("read"), {"collection": "articles", "query": "tea"}
    async with make_client(WRITER, **KEYS, keys_file=limited) as client:
        await client.put("/collections/a")
        job = (await client.post("/collections/demo/jobs", json={"source": "tea.jsonl"})).json()["id"]

        async def seen() -> tuple[list[str], list[str], list[str], int]:
            lists = [
                (await client.get(f"/{what}", headers=reader)).json()[what]
                for what in ("collections", "aliases", "jobs")
            ]
            one = await client.get(f"/jobs/{job}", headers=reader)
            collections, aliases, jobs = lists
            return (
                [each["name"] for each in collections],
                [each["alias"] for each in aliases],
                [each["id"] for each in jobs],
                one.status_code,
            )

        await client.put("/aliases/live", json={"collection": "demo"})
        assert await seen() == (["a"], [], [], 404)
        assert (await client.delete(f"/jobs/{job}", headers=bearer("admin"))).status_code == 404
        assert (await client.post("/search", json=search, headers=reader)).status_code == 404
        await client.put("/aliases/articles", json={"collection": "demo"})
        assert await seen() == (["a"], ["articles"], [job], 200)
        assert (await client.post("/search", json=search, headers=reader)).status_code == 200
        assert (await client.get("/collections/demo", headers=reader)).status_code == 403
        assert refused(await client.get("/metrics", headers=reader)) == (403, "collection_not_allowed", None)
        everything = {each["id"] for each in (await client.get("/jobs")).json()["jobs"]}
        assert everything == {job}


async def test_what_a_key_has_by_an_alias_alone_it_cannot_keep(make_client: Any, limited: Path) -> None:
    """Whoever owns the alias takes it away by switching it."""
    admin, forbidden = bearer("admin"), (403, "collection_not_allowed")
    async with make_client(WRITER, **KEYS, keys_file=limited) as client:
        await client.put("/collections/a")
        await client.put("/aliases/a-today", json={"collection": "demo"})
        backup = (await client.post("/collections/demo/backups")).json()["id"]
        documents = {"documents": [{"id": "new", "text": "hot tea"}]}
        put = await client.put("/collections/a-today/documents", json=documents, headers=admin)
        assert put.status_code == 200
        for method, path, body in (
            ("PUT", "/aliases/a-own", {"collection": "a-today"}),
            ("PUT", "/aliases/a-own", {"collections": ["a", "a-today"]}),
            ("PUT", "/aliases/a-today", {"collection": "a"}),
            ("DELETE", "/aliases/a-today", None),
            ("POST", "/collections/a-today/backups", None),
            ("DELETE", f"/collections/a-today/backups/{backup}", None),
            ("POST", f"/collections/a-today/backups/{backup}/restore", {"name": "a-copy"}),
            ("POST", "/collections/a-today/jobs", {"source": "tea.jsonl"}),
        ):
            answer = await client.request(method, path, json=body, headers=admin)
            assert refused(answer)[:2] == forbidden, (method, path, answer.text)
        assert (await client.put("/aliases/a-own", json={"collection": "a"}, headers=admin)).is_success
        assert (await client.get("/aliases/a-today")).json()["collection"] == "demo"


async def test_a_job_is_cancelled_by_who_may_use_its_collection(
    make_client: Any, limited: Path, data: Path
) -> None:
    (data / "sources").mkdir()
    (data / "sources" / "tea.jsonl").write_text('{"id": "a", "text": "tea"}\n')
    async with make_client(WRITER, **KEYS, keys_file=limited) as client:
        await client.put("/aliases/a-demo", json={"collection": "demo"})
        job = (await client.post("/collections/demo/jobs", json={"source": "tea.jsonl"})).json()["id"]
        assert (await client.get(f"/jobs/{job}", headers=bearer("admin"))).status_code == 200
        answer = await client.delete(f"/jobs/{job}", headers=bearer("admin"))
        assert refused(answer)[:2] == (403, "collection_not_allowed")


async def test_a_conflict_names_no_alias_that_the_key_may_not_see(make_client: Any, limited: Path) -> None:
    async with make_client(WRITER, **KEYS, keys_file=limited) as client:
        await client.put("/collections/a")
        await client.put("/aliases/a-own", json={"collection": "a"})
        answer = await client.delete("/collections/a", headers=bearer("admin"))
        assert (answer.status_code, "'a-own'" in answer.text) == (409, True)
        await client.put("/aliases/secret", json={"collection": "a"})
        answer = await client.delete("/collections/a", headers=bearer("admin"))
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "collection_aliased")
        assert "secret" not in answer.text
        assert "'secret'" in (await client.delete("/collections/a")).text
