"""What the description says of refusals is what the server answers."""

import asyncio
import shutil
from pathlib import Path
from typing import Any

import httpx
import pytest

from tercet.service.app import create_app, create_worker_app
from tercet.service.edge.entrance import ALWAYS_SERVED
from tercet.service.settings.settings import Settings
from tests.full_disk import fill
from tests.service.polling import pause
from tests.service.test_description import IMPORT, OPEN, operations

pytestmark = pytest.mark.slow


WRITER = {"Authorization": "Bearer writer"}


BODIES: dict[str, Any] = {
    "POST /embed": {"inputs": "tea"},
    "POST /search": {"collection": "demo", "query": "tea"},
    "POST /rerank": {"query": "tea", "inputs": ["tea"]},
    "POST /collections/{name}/jobs": {"source": "tea.jsonl"},
    "PUT /aliases/{alias}": {"collection": "demo"},
    "PUT /collections/{name}/documents": {"documents": [{"id": "tea", "text": "tea"}]},
    "PATCH /collections/{name}/documents/{document_id}": {"metadata": {}},
    "POST /collections/{name}/fields": {"fields": {"price": "number"}},
    "PUT /collections/{name}/defaults": {"weights": "miracl"},
    "POST /collections/{name}/documents/get": {"ids": ["tea"]},
    "POST /collections/{name}/documents/update": {"ids": ["tea"], "metadata": {}},
    "POST /collections/{name}/documents/delete": {"ids": ["tea"]},
    "POST /v1/embeddings": {"input": "tea"},
    "POST /tei/embed": {"inputs": "tea"},
    "POST /tei/embed_sparse": {"inputs": "tea"},
    "POST /tei/embed_all": {"inputs": "tea"},
    "POST /tei/v1/embeddings": {"input": "tea"},
    "POST /tei/rerank": {"query": "tea", "texts": ["tea"]},
    "POST /tei/tokenize": {"inputs": "tea"},
    "POST /tei/similarity": {"inputs": {"source_sentence": "tea", "sentences": ["tea"]}},
    "POST /tei/decode": {"ids": [5]},
    "POST /v2/embed": {"texts": ["tea"]},
    "POST /v2/rerank": {"query": "tea", "documents": ["tea"]},
    "POST /v1/rerank": {"query": "tea", "documents": ["tea"]},
    "POST /jina/v1/embeddings": {"input": ["tea"]},
    "POST /api/embed": {"input": "tea"},
    "POST /api/embeddings": {"prompt": "tea"},
    "POST /api/show": {"model": "tiny"},
    "POST /jina/v1/rerank": {"query": "tea", "documents": ["tea"]},
    "POST /jina/v1/multi-vector": {"input": ["tea"]},
    "POST /dify/retrieval": {"knowledge_id": "demo", "query": "tea"},
}


FORBIDDEN = ("POST /dify/retrieval",)  # answer 403 where there is no key


STORING = ("collections", "documents", "aliases", "backups", "jobs")


async def ask(client: httpx.AsyncClient, name: str, **options: Any) -> int:
    """The status of one operation's answer to a request that could succeed."""
    method, path = name.split(" ")
    path = path.format(
        name="demo", document_id="tea", job_id="any", alias="live", backup_id="any", model="any"
    )
    if name in BODIES and "content" not in options:
        options["json"] = BODIES[name]
    if name == IMPORT:
        options = {"params": {"filename": "a.csv"}, "content": b"id,text\na,tea\n", **options}
    return (await client.request(method, path, **options)).status_code


@pytest.mark.parametrize("create", [create_app, create_worker_app])
async def test_what_is_answered_before_a_handler_runs_is_documented(make_client: Any, create: Any) -> None:
    async with make_client(
        WRITER, create=create, max_body_bytes=100, max_import_bytes=100, api_keys="writer"
    ) as client:
        for name, operation in operations((await client.get("/openapi.json")).json()):
            documented = {int(status) for status in operation["responses"]}
            is_open = name in OPEN
            no_key = await ask(client, name, headers={"Authorization": "none"})
            refused = 403 if name in FORBIDDEN else 401
            assert (no_key == refused) == (refused in documented) == (not is_open), name
            assert name not in FORBIDDEN or 401 not in documented
            assert await ask(client, name, headers={"Host": "evil.example"}) == 403, name
            assert await ask(client, name, content=b"x" * 101) == 413, name
            malformed = 422 if operation["tags"] == ["tei"] else 400
            assert {malformed, 403, 413} <= documented, name


@pytest.mark.parametrize("create", [create_app, create_worker_app])
async def test_where_too_many_requests_are_refused_is_documented(
    make_client: Any, held: Any, create: Any
) -> None:
    async with make_client(encoder=held, create=create, max_concurrent_requests=1) as client:
        description = (await client.get("/openapi.json")).json()
        held.gate.clear()
        first = asyncio.create_task(ask(client, "POST /embed"))
        while "tercet_queue_tokens 3.0" not in (await client.get("/metrics")).text:
            await pause()
        for name, operation in operations(description):
            refused = await ask(client, name) == 429
            assert refused == ("429" in operation["responses"]), name
            assert refused != (name.split(" ")[1] in ALWAYS_SERVED), name
        held.gate.set()
        assert await first == 200


@pytest.mark.parametrize("create", [create_app, create_worker_app])
async def test_where_a_server_that_loads_is_not_ready_is_documented(tmp_path: Path, create: Any) -> None:
    app = create(Settings(data=tmp_path, encoder_urls="http://127.0.0.1:9"))
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client,
    ):
        statuses = {}
        for name, operation in operations(app.openapi()):
            statuses[name] = await ask(client, name)
            assert str(statuses[name]) in operation["responses"], (name, statuses[name])
        assert [name for name, status in statuses.items() if status == 503]
        assert statuses["GET /health"] == 200


async def test_what_a_full_disk_gives_is_documented(make_client: Any, data: Path, small_disk: Path) -> None:
    root = shutil.copytree(data, small_disk / "data")
    (root / "sources").mkdir(exist_ok=True)
    (root / "sources" / "tea.jsonl").write_text('{"id": "a", "text": "tea"}')
    async with make_client(data=root) as client:
        described = operations((await client.get("/openapi.json")).json())
        fill(small_disk)
        statuses = {}
        for name, operation in sorted(described, key=lambda each: each[0].startswith("DELETE")):
            path = name.replace("{name}", "{name}-new") if name == "PUT /collections/{name}" else name
            statuses[name] = await ask(client, path)
            assert str(statuses[name]) in operation["responses"], (name, statuses[name])
            reads = name.startswith("GET ") or name.endswith(("/documents/count", "/documents/get"))
            changes = not reads and operation["tags"][0] in STORING
            assert not changes or "507" in operation["responses"], name
        assert statuses["PUT /collections/{name}"] == 507
        assert statuses["PUT /collections/{name}/documents"] == 507
        assert statuses["POST /search"] == 200
