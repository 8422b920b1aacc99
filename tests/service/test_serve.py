"""The whole server as its own process, with an embedded checkpoint: build, search, embed, stop."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from tercet.service.serving import ENCODER_NICENESS, run_server
from tests.ports import held_port
from tests.service.conftest import PATIENCE_SECONDS, StartServer, _heed_interrupts

DOCUMENTS = [
    {"id": "tea", "text": "Green tea is brewed with hot water.", "metadata": {"year": 2001}},
    {"id": "train", "title": "Steam", "text": "A steam engine pulls the train.", "metadata": {"year": 1830}},
    {"_id": "dough", "text": "Yeast makes bread dough rise."},
]

PAUSE_SECONDS = 0.1


@contextmanager
def hang_ups(handler: signal.Handlers) -> Iterator[None]:
    """What processes that are started meanwhile do with a hang-up; the tests may run under `nohup`."""
    former = signal.signal(signal.SIGHUP, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, former)


def wait_ready(process: subprocess.Popen[str], client: httpx.Client) -> None:
    while process.poll() is None:
        try:
            if client.get("/ready").status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(PAUSE_SECONDS)
    pytest.fail(f"the server ended with {process.returncode}")


def finished_job(client: httpx.Client, collection: str, source: str) -> dict[str, Any]:
    submitted = client.post(f"/collections/{collection}/jobs", json={"source": source})
    assert submitted.status_code == 202, submitted.text
    job: dict[str, Any] = submitted.json()
    assert job["state"] in ("queued", "running")
    while job["state"] in ("queued", "running"):
        time.sleep(PAUSE_SECONDS)
        job = client.get(f"/jobs/{job['id']}").json()
    return job


def logged(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for file in folder.glob("log-*") for line in file.read_text().splitlines()]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="threads have a priority of their own on Linux alone")
def test_threads_that_encode_yield_to_the_event_loop(start_server: StartServer) -> None:
    process, client = start_server("serve", "--threads", "2")
    wait_ready(process, client)
    assert client.post("/embed", json={"inputs": ["bees dance"] * 64}).status_code == 200
    own = os.getpriority(os.PRIO_PROCESS, process.pid)  # of the main thread, which runs the loop
    threads = [int(path.name) for path in Path(f"/proc/{process.pid}/task").iterdir()]
    found = [os.getpriority(os.PRIO_PROCESS, thread) for thread in threads]
    assert found.count(min(19, own + ENCODER_NICENESS)) == 2
    assert set(found) == {own, min(19, own + ENCODER_NICENESS)}


def test_from_a_file_to_hits_and_a_clean_end(start_server: StartServer, tmp_path: Path) -> None:
    sources = tmp_path / "data" / "sources"
    sources.mkdir(parents=True)
    (sources / "articles.jsonl").write_text("\n".join(map(json.dumps, DOCUMENTS)))
    (sources / "bad.jsonl").write_text('{"id": "a", "text": 5}')
    process, client = start_server("serve", "--threads", "1", TERCET_CHECKPOINT="multi-m3")
    wait_ready(process, client)

    assert client.put("/collections/articles", json={"fields": {"year": "integer"}}).status_code == 201
    job = finished_job(client, "articles", "articles.jsonl")
    assert (job["state"], job["documents_done"], job["error"]) == ("succeeded", 3, None)
    assert client.get("/collections/articles").json()["snapshot"] == job["snapshot"]

    body = {"collection": "articles", "query": "why does bread rise?", "explain": True}
    answer = client.post("/search", json=body).json()
    assert answer["snapshot"] == job["snapshot"]
    assert answer["hits"][0]["id"] == "dough"
    assert " bread" in [term["token"] for term in answer["hits"][0]["explanation"]["terms"]]
    old = client.post("/search", json={**body, "filter": {"lt": {"year": 1900}}}).json()["hits"]
    assert [hit["id"] for hit in old] == ["train"]
    texts = {"inputs": [d["text"] for d in DOCUMENTS], "collection": "articles"}  # its idf counts
    ranked = client.post("/rerank", json={"query": body["query"], **texts}).json()["results"]
    assert ranked[0]["index"] == 2
    assert ranked[0]["score"] == pytest.approx(answer["hits"][0]["score"], abs=0.02)
    embedded = client.post("/embed", json={"inputs": ["hello world"]}).json()
    assert embedded["model"] == "multi-m3"
    assert len(embedded["embeddings"][0]["dense"]) == 384
    assert {"▁hell", "o", "▁world"} == set(embedded["embeddings"][0]["sparse"]["tokens"])

    failed = finished_job(client, "articles", "bad.jsonl")
    assert failed["state"] == "failed"
    assert "bad.jsonl" in failed["error"]
    assert client.post("/search", json=body).json()["hits"] == answer["hits"]
    outside = client.post("/collections/articles/jobs", json={"source": "../../etc/passwd"})
    assert (outside.status_code, outside.json()["error"]["param"]) == (422, "source")
    assert [each["state"] for each in client.get("/jobs").json()["jobs"]] == ["failed", "succeeded"]
    assert 'tercet_jobs{state="succeeded"} 1.0' in client.get("/metrics").text

    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_SECONDS) == 0
    lines = logged(tmp_path)
    assert any(line["message"] == "request" and line["path"] == "/search" for line in lines)
    assert not [line for line in lines if line["level"] == "WARNING" and "key" in line["message"]]


@pytest.mark.slow
def test_after_sigterm_it_is_not_ready_and_still_serves_until_the_pause_or_a_second_signal_ends_it(
    start_server: StartServer, tmp_path: Path
) -> None:
    process, client = start_server("encoder", "--threads", "1", TERCET_DRAIN_SECONDS="1000")
    wait_ready(process, client)
    process.send_signal(signal.SIGTERM)
    while (answer := client.get("/ready")).status_code == 200:
        time.sleep(PAUSE_SECONDS)
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "not_ready")
    assert "about to end" in answer.json()["error"]["message"]
    assert client.get("/health").status_code == 200
    url = f"{client.base_url}/embed"  # on a new connection
    assert httpx.post(url, json={"inputs": ["hello"]}, timeout=PATIENCE_SECONDS).status_code == 200
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_SECONDS) == 0
    said = [line["message"] for line in logged(tmp_path)]
    for event in ("SIGTERM: draining for 1000 s", "stopping: ", "stopped"):
        assert any(message.startswith(event) for message in said), event


@pytest.mark.slow
@pytest.mark.parametrize(
    ("signal_number", "pause"), [(signal.SIGTERM, "0.5"), (signal.SIGHUP, "0.5"), (signal.SIGINT, "1000")]
)
def test_the_pause_ends_by_itself_and_an_interrupt_from_the_keyboard_takes_none(
    start_server: StartServer, signal_number: int, pause: str
) -> None:
    with hang_ups(signal.SIG_DFL):
        process, client = start_server("encoder", "--threads", "1", "--drain-seconds", pause)
    wait_ready(process, client)
    process.send_signal(signal_number)
    assert process.wait(PATIENCE_SECONDS) == (130 if signal_number == signal.SIGINT else 0)


@pytest.mark.slow
def test_a_server_that_was_told_to_ignore_hang_ups_does(start_server: StartServer) -> None:
    """As `nohup` tells it."""
    with hang_ups(signal.SIG_IGN):
        process, client = start_server("encoder", "--drain-seconds", "300")
    wait_ready(process, client)
    process.send_signal(signal.SIGHUP)
    for _ in range(3):
        assert client.get("/ready").status_code == 200


@pytest.mark.slow
def test_sigterm_before_the_first_request_can_be_taken_ends_the_server(
    tmp_path: Path, repository: Path
) -> None:
    told_early = """
import os, signal, sys
import tercet.cli.main, tercet.service.serving
address_of = tercet.service.serving.address_of
tercet.service.serving.address_of = lambda socket: (os.kill(os.getpid(), signal.SIGTERM),
address_of(socket))[1]
sys.argv = ["tercet", "serve", "--port", "0", "--checkpoint", "minilm-m3"]
tercet.cli.main.main()
"""
    done = subprocess.run(
        [sys.executable, "-c", told_early],
        cwd=tmp_path,
        timeout=PATIENCE_SECONDS,
    )
    assert done.returncode == 0


def test_a_search_server_and_its_encoder_worker(start_server: StartServer, tmp_path: Path) -> None:
    worker, worker_client = start_server("encoder", "--threads", "1", TERCET_API_KEYS="between-us")
    worker.send_signal(signal.SIGSTOP)  # else it may be ready as soon as the search server listens
    process, client = start_server(
        "serve",
        "--encoder-url",
        str(worker_client.base_url),
        TERCET_ENCODER_KEY="between-us",
        TERCET_CHECKPOINT="not-there",
    )
    assert client_ready(process, client) == httpx.codes.SERVICE_UNAVAILABLE
    worker.send_signal(signal.SIGCONT)
    wait_ready(worker, worker_client)
    wait_ready(process, client)
    assert worker_client.get("/info").status_code == 401
    assert client.get("/info").json()["encoder"]["name"] == "minilm-m3"
    sources = tmp_path / "data" / "sources"
    sources.mkdir(parents=True)
    (sources / "articles.jsonl").write_text("\n".join(map(json.dumps, DOCUMENTS)))
    job = finished_job(client, "articles", "articles.jsonl")
    assert job["state"] == "succeeded", job
    hits = client.post(
        "/search", json={"collection": "articles", "query": "how is green tea brewed?"}
    ).json()["hits"]
    assert hits[0]["id"] == "tea"
    assert "between-us" not in "".join(file.read_text() for file in tmp_path.glob("log-*"))


@pytest.mark.slow
def test_sigterm_ends_a_server_that_waits_for_its_workers(start_server: StartServer) -> None:
    process, client = start_server("serve", "--encoder-url", "http://127.0.0.1:9")
    assert client_ready(process, client) == httpx.codes.SERVICE_UNAVAILABLE
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_SECONDS) == 0


def client_ready(process: subprocess.Popen[str], client: httpx.Client) -> int:
    """The status of `/ready` as soon as the server listens."""
    while process.poll() is None:
        try:
            return client.get("/ready").status_code
        except httpx.TransportError:
            time.sleep(PAUSE_SECONDS)
    pytest.fail("the server ended")


class DrippingHub(BaseHTTPRequestHandler):
    """A hub that lists one file of a checkpoint, and never gets to the end of sending it."""

    downloading = threading.Event()

    def do_HEAD(self) -> None:
        self._head({"Content-Length": "1000000", "ETag": '"tag"', "X-Repo-Commit": "c" * 40})

    def do_GET(self) -> None:
        if self.path.startswith("/api/"):
            file = {"type": "file", "path": "config.json", "size": 1_000_000, "oid": "0" * 40}
            model = {"id": "someone/something", "sha": "c" * 40, "siblings": [{"rfilename": "config.json"}]}
            listed = json.dumps([file] if "/tree/" in self.path else model).encode()
            self._head({"Content-Length": str(len(listed)), "Content-Type": "application/json"})
            self.wfile.write(listed)
            return
        self.do_HEAD()
        self.downloading.set()
        with suppress(OSError):
            while True:
                self.wfile.write(b" ")
                time.sleep(PAUSE_SECONDS)

    def _head(self, headers: dict[str, str]) -> None:
        self.send_response(200)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Prints nothing."""


@pytest.mark.slow
def test_a_download_does_not_keep_the_server_from_ending(start_server: StartServer, tmp_path: Path) -> None:
    hub = ThreadingHTTPServer(("127.0.0.1", 0), DrippingHub)
    hub.daemon_threads = True
    threading.Thread(target=hub.serve_forever, daemon=True).start()
    process, client = start_server(
        *("serve", "--checkpoint", "someone/something"),
        HF_ENDPOINT=f"http://127.0.0.1:{hub.server_address[1]}",
        HF_HOME=str(tmp_path / "hub"),
        HF_HUB_OFFLINE="0",
    )
    assert DrippingHub.downloading.wait(PATIENCE_SECONDS)
    assert client_ready(process, client) == httpx.codes.SERVICE_UNAVAILABLE
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_SECONDS) == 0
    hub.shutdown()
    hub.server_close()


@pytest.mark.slow
def test_a_ready_server_collects_no_garbage_among_what_it_loaded(make_app: Any) -> None:
    """A full collection over all that is loaded stops the event loop for a tenth of a second."""
    gc.unfreeze()  # what earlier servers left
    app = make_app(port=0)
    thread = threading.Thread(target=run_server, args=(app, app.state.runtime.settings))
    thread.start()
    try:
        while not gc.get_freeze_count():
            assert thread.is_alive()
            time.sleep(0.01)
    finally:
        app.state.runtime.failed()  # what ends a server that cannot start ends any
        thread.join(PATIENCE_SECONDS)
        gc.unfreeze()
    assert not thread.is_alive()


def test_a_killed_server_comes_back_with_every_write(start_server: StartServer) -> None:
    process, client = start_server("serve", "--threads", "1")
    wait_ready(process, client)
    assert client.put("/collections/articles", json={"fields": {"year": "integer"}}).status_code == 201
    path = "/collections/articles/documents"
    documents = [{"id": each.get("id", "dough"), "text": each["text"]} for each in DOCUMENTS]
    first = client.put(path, json={"documents": documents, "idempotency_key": "all"}).json()
    assert (first["upserted"], first["position"]) == (3, 1)
    assert client.patch(f"{path}/tea", json={"metadata": {"year": 2001}}).json() == {"position": 2}
    assert client.delete(f"{path}/train").json() == {"deleted": 1, "position": 3}
    query = {"collection": "articles", "query": "why does bread rise?"}
    hits = client.post("/search", json=query).json()["hits"]
    assert [hit["id"] for hit in hits] == ["dough", "tea"]
    process.kill()
    process.wait(PATIENCE_SECONDS)

    process, client = start_server("serve", "--threads", "1")
    wait_ready(process, client)
    assert client.post("/search", json=query).json()["hits"] == hits
    assert client.get(f"{path}/tea").json()["metadata"] == {"year": 2001}
    assert client.get(f"{path}/train").status_code == 404
    assert client.put(path, json={"documents": documents, "idempotency_key": "all"}).json() == first
    assert client.get("/collections/articles/stats").json()["position"] == 3
    assert client.put(path, json={"documents": documents}).json()["position"] == 4
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_SECONDS) == 0


@pytest.mark.slow
def test_a_reader_of_the_log_who_stalls_stops_nothing(tmp_path: Path, repository: Path) -> None:
    """Nobody reads its standard error: 1,500 requests are answered, and the server ends when told."""
    reading, writing = os.pipe()
    environment = {key: value for key, value in os.environ.items() if not key.startswith("TERCET_")}
    with held_port() as port:
        process = subprocess.Popen(
            [sys.executable, "-m", "tercet.cli.main", "serve", "--port", str(port), "--threads", "1"],
            cwd=tmp_path,
            env={**environment, "TERCET_AUDIT": "all"},
            stderr=writing,
            preexec_fn=_heed_interrupts,
        )
        os.close(writing)
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_SECONDS) as client:
                wait_ready(process, client)
                for _ in range(1500):
                    assert client.get("/info").status_code == 200
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE_SECONDS) == 0
        finally:
            process.kill()
            process.wait()
            os.close(reading)
