"""Health, readiness, info, metrics, request ids and logs."""

import asyncio
import json
import logging
import re
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tercet.index.documents.datetimes import time_now
from tercet.ingest.errors import SourceError
from tercet.ingest.sources.files import holds_texts, source_files
from tercet.models.checkpoint import EncodingSettings
from tercet.service.app import create_app
from tercet.service.jobs.store import KEPT_JOBS, Job
from tercet.service.load.loop import BEAT_SECONDS
from tercet.service.runtime import Runtime
from tercet.service.settings.settings import Settings
from tercet.service.telemetry.logs import configure_logging
from tercet.service.telemetry.metrics import Telemetry
from tests.service.polling import pause


async def test_ready_waits_for_the_encoder_and_tells_why_it_fails(tmp_path: Path) -> None:
    app = create_app(Settings(data=tmp_path, checkpoint=str(tmp_path / "nothing")))
    called = []
    app.state.runtime.failed = lambda: called.append(True)
    transport = httpx.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://localhost") as client,
    ):
        response = await client.get("/ready")
        assert response.status_code == 503
        assert response.json()["error"]["type"] == "not_ready"
        assert (await client.get("/health")).json() == {"status": "ok"}
        assert (await client.post("/embed", json={"inputs": "a"})).status_code == 503
        assert (await client.get("/jobs")).status_code == 503
        assert (await client.get("/collections")).json() == {"collections": []}
        while not called:
            response = await client.get("/ready")
            await pause()
        response = await client.get("/ready")
        assert response.json()["error"]["message"] == "the server cannot start; its log says why"


def put_a_file_in_the_way(folder: Path) -> None:
    folder.rename(folder.with_name("moved"))
    folder.write_text("no folder")


async def test_ready_needs_a_data_root_to_write_to(make_client: Any, data: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("tercet.service.runtime.LOOK_SECONDS", 0.01)
    async with make_client() as client:
        assert (await client.get("/ready")).json() == {"status": "ready", "reads": "ready", "writes": "ready"}
        put_a_file_in_the_way(data)
        while (response := await client.get("/ready")).status_code == 200:
            await pause()
        assert response.status_code == 503
        assert "cannot be written" in response.json()["error"]["message"]


async def test_the_page_of_the_description_loads_nothing_from_elsewhere(client: httpx.AsyncClient) -> None:
    page = (await client.get("/docs")).text
    loaded = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert len(loaded) == 3
    for address in loaded:
        response = await client.get(address)
        assert response.status_code == 200
        assert response.content
    assert "https://" not in page


async def test_info_names_encoder_and_limits(client: httpx.AsyncClient, tiny: Any) -> None:
    answer = (await client.get("/info")).json()
    assert answer["name"] == "tercet"
    assert answer["encoder"]["fingerprint"] == tiny.info.fingerprint
    assert EncodingSettings.from_json(answer["encoding_settings"]) == tiny.tokenizer.settings
    assert answer["limits"]["top_k"] == 1000


async def test_info_names_the_kinds_of_files_that_imports_read(
    client: httpx.AsyncClient, tmp_path: Path
) -> None:
    files = (await client.get("/info")).json()["files"]
    for kind in files["kinds"]:
        for ending in kind["endings"]:
            for packing in ("", *files["packings"]):
                path = tmp_path / f"a{ending}{packing}"
                path.touch()
                if packing and not kind["packed"]:
                    with pytest.raises(SourceError, match="unknown kind of file"):
                        source_files(path)
                else:
                    assert source_files(path) == [path]
                    assert holds_texts(path) == kind["text"]


async def test_metrics_count_requests_by_route_and_never_by_path(client: httpx.AsyncClient) -> None:
    await client.post("/search", json={"collection": "demo", "query": "tea"})
    for path in ("/nowhere", "/elsewhere", "/collections/none"):
        await client.get(path)
    await client.request("BREW", "/search")
    await client.post("/rerank", content=b" " * (17 << 20))
    await pause()  # an answer is counted once it has left
    text = (await client.get("/metrics")).text
    assert 'tercet_requests_total{method="POST",route="/search",status="200"} 1.0' in text
    assert 'tercet_requests_total{method="GET",route="unmatched",status="404"} 2.0' in text
    assert 'tercet_requests_total{method="GET",route="/collections/{name}",status="404"} 1.0' in text
    assert 'tercet_requests_total{method="POST",route="/rerank",status="413"} 1.0' in text
    assert 'method="other"' in text
    assert "elsewhere" not in text
    assert 'tercet_documents{collection="demo"} 5.0' in text
    assert "tercet_queue_tokens 0.0" in text
    for stage in ("encode", "retrieve", "score", "total"):
        assert f'tercet_stage_seconds_count{{stage="{stage}"}} 1.0' in text


async def test_the_page_lists_every_metric(client: httpx.AsyncClient, repository: Path) -> None:
    await client.post("/search", json={"collection": "demo", "query": "tea"})
    text = (await client.get("/metrics")).text
    rendered = {family.name for family in text_string_to_metric_families(text)}
    page = (repository / "docs" / "observe.md").read_text(encoding="utf-8")
    section = page.split("\n## Metrics\n")[1]
    documented = set(re.findall(r"`((?:tercet|process|python)_\w+)`", section))
    assert {name.removesuffix("_total") for name in documented} == rendered


def value_of(text: str, sample: str) -> float:
    """The value of a sample, by its name and labels as they are shown."""
    (value,) = re.findall(rf"^{re.escape(sample)} (\S+)$", text, re.M)
    return float(value)


@pytest.mark.slow
async def test_metrics_tell_what_an_operator_needs(make_client: Any, data: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("tercet.service.runtime.LOOK_SECONDS", 0.01)
    async with make_client() as client:
        before = (await client.get("/metrics")).text
        for state in (
            "succeeded",
            "failed",
            "cancelled",
        ):  # there from the start, so that the first is a rise
            assert value_of(before, f'tercet_jobs_ended_total{{state="{state}"}}') == 0
        assert "tercet_backup_age_seconds{" not in before
        assert value_of(before, 'tercet_open_collections{kind="written"}') == 0
        (data / "sources").mkdir(exist_ok=True)
        (data / "sources" / "bad.jsonl").write_text("no JSON")
        job = (await client.post("/collections/demo/jobs", json={"source": "bad.jsonl"})).json()
        while (await client.get(f"/jobs/{job['id']}")).json()["state"] != "failed":
            await pause()
        await client.put("/collections/demo/documents", json={"documents": [{"id": "x", "text": "tea"}]})
        assert (await client.post("/collections/demo/backups")).status_code == 201
        while value_of((text := (await client.get("/metrics")).text), 'tercet_ready{operation="reads"}') != 1:
            await pause()
        assert value_of(text, 'tercet_ready{operation="writes"}') == 1
        assert value_of(text, 'tercet_jobs_ended_total{state="failed"}') == 1
        assert value_of(text, 'tercet_open_collections{kind="written"}') == 1
        assert 0 <= value_of(text, 'tercet_backup_age_seconds{collection="demo"}') < 600
        assert 1 <= value_of(text, "tercet_threads") < 1000
        assert value_of(text, "tercet_data_free_bytes") > 2**20
        await client.delete("/collections/demo")
        assert "tercet_backup_age_seconds{" not in (await client.get("/metrics")).text
        put_a_file_in_the_way(data)
        while value_of((await client.get("/metrics")).text, 'tercet_ready{operation="reads"}') != 0:
            await pause()


async def test_a_long_list_of_jobs_is_cheap(make_client: Any) -> None:
    async with make_client() as client:
        jobs = client._transport.app.state.runtime.jobs
        for number in range(KEPT_JOBS):
            skips = [f"sources/a.jsonl line {line}: text is missing" for line in range(20)]
            job = Job(f"{number:032}", "demo", "a.jsonl", time_now(), "failed", skips=skips, error="x" * 200)
            jobs._store.keep(job)
        seconds = []
        for _ in range(5):  # threads of other tests may work meanwhile
            began = time.process_time()
            answer = await client.get("/jobs")
            seconds.append(time.process_time() - began)
        assert [job["id"] for job in answer.json()["jobs"]][::499] == [f"{499:032}", f"{0:032}"]
        assert answer.json()["jobs"][0]["skips"] == skips
        assert min(seconds) < 0.1


async def test_metrics_tell_requests_in_progress_and_how_each_ended(make_client: Any, held: Any) -> None:
    async with make_client(encoder=held) as client:
        held.gate.clear()
        request = asyncio.create_task(client.post("/embed", json={"inputs": "tea"}))
        while "tercet_requests_in_progress 2.0" not in (text := (await client.get("/metrics")).text):
            await pause()
        assert 'tercet_request_seconds_count{route="/embed"' not in text
        held.gate.set()
        assert (await request).status_code == 200
        await client.post("/embed", json={"inputs": 5})
        await pause()  # an answer is counted once it has left
        text = (await client.get("/metrics")).text
    assert "tercet_requests_in_progress 1.0" in text  # the one that asks
    for status in (200, 422):
        assert f'tercet_request_seconds_count{{route="/embed",status="{status}"}} 1.0' in text
    memory = re.search(r"^process_resident_memory_bytes (\S+)$", text, re.M)
    assert memory is not None
    assert float(memory[1]) > 2**20


async def test_a_blocked_event_loop_shows(make_client: Any) -> None:
    async with make_client() as client:
        await asyncio.sleep(2 * BEAT_SECONDS)
        time.sleep(0.4)  # noqa: ASYNC251 - what must not happen
        await asyncio.sleep(2 * BEAT_SECONDS)
        text = (await client.get("/metrics")).text
    slow = re.search(r'^tercet_loop_lag_seconds_bucket{le="0.2"} (\S+)$', text, re.M)
    total = re.search(r"^tercet_loop_lag_seconds_count (\S+)$", text, re.M)
    assert slow is not None
    assert total is not None
    assert float(slow[1]) < float(total[1])


def test_each_application_has_its_own_registry() -> None:
    first, second = Telemetry(), Telemetry()
    first.observe_batch("tiny", 2, 10, 0.1)
    assert b'tercet_batch_tokens_sum{model="tiny"} 10.0' in first.render()
    assert b"tercet_batch_tokens_sum{" not in second.render()


async def test_request_ids_are_kept_where_sane_and_made_otherwise(client: httpx.AsyncClient) -> None:
    kept = await client.get("/health", headers={"X-Request-ID": "order-66.retry:1"})
    assert kept.headers["X-Request-ID"] == "order-66.retry:1"
    for bad in ("", "a b", "x" * 200, "<script>"):
        made = await client.get("/health", headers={"X-Request-ID": bad})
        assert re.fullmatch(r"[0-9a-f]{32}", made.headers["X-Request-ID"])


async def test_one_log_line_for_each_request(client: httpx.AsyncClient, caplog: Any) -> None:
    with caplog.at_level(logging.INFO, "tercet.request"):
        await client.get(
            "/collections/x%0Ay%1b", headers={"X-Request-ID": "mine", "Authorization": "Bearer s3cret"}
        )
        await pause()  # it is logged once it has left
    (record,) = [record for record in caplog.records if record.name == "tercet.request"]
    assert (record.method, record.path, record.status) == ("GET", "/collections/x\\ny\\x1b", 422)
    assert record.request_id == "mine"
    assert record.milliseconds > 0
    assert "s3cret" not in repr(vars(record))


@pytest.fixture
def _logging_restored() -> Any:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.mark.usefixtures("_logging_restored")
def test_logs_are_json_or_text(capfd: Any) -> None:
    facts = {"request_id": "r", "method": "GET", "path": "/x", "status": 200, "milliseconds": 1.5}
    writer = configure_logging("info", "json")
    logging.getLogger("tercet.request").info("request", extra=facts)
    writer.close()
    line = json.loads(capfd.readouterr().err)
    assert {
        **facts,
        "level": "INFO",
        "logger": "tercet.request",
        "message": "request",
    }.items() <= line.items()
    writer = configure_logging("warning", "text")
    logging.getLogger("tercet.request").info("hidden")
    logging.getLogger("tercet.request").warning("request", extra=facts)
    writer.close()
    assert capfd.readouterr().err.endswith(
        "WARNING request method=GET path=/x status=200 milliseconds=1.5 request_id=r\n"
    )


async def test_a_runtime_that_closes_while_loading_ends(tmp_path: Path) -> None:
    settings = Settings(data=tmp_path, encoder_urls="http://127.0.0.1:9")
    runtime = Runtime(settings, Telemetry(), searches=True)
    await runtime.start()
    await runtime.stop()
