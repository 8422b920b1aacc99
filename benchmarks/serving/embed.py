"""What one short query takes through `POST /embed`, beside the same engine in this process.

A query of 12 tokens, another one each time, so that no cache has it. Bare: tokenized and encoded here, all
three outputs, by the fastest engine that runs the checkpoint. Session: the same graph run by onnxruntime, of
tokens made before, in a plain session with one thread or one a core. HTTP: a server with default settings,
asked over a kept connection and over a new one, for JSON and for the binary body. Short runs of each kind
alternate, so that whatever else the machine does hits them all; then again while a job of the server builds a
collection. The client writes and reads bytes, since a library's own work is not the server's.
"""

from __future__ import annotations

import json
import random
import socket
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import onnxruntime

from benchmarks.serving.cranfield import texts_of
from benchmarks.serving.server import Server, serving
from tercet.models.checkpoint import ENGLISH, MULTILINGUAL, resolve_checkpoint
from tercet.models.cores import usable_cores
from tercet.models.encoder import Encoder, Engine, encode
from tercet.models.errors import UnsupportedError
from tercet.models.graphs.record import choose_graph, read_export, verify_graph
from tercet.models.loader import load_encoder
from tercet.models.representations import OUTPUTS, Int64
from tercet.models.tokenizer import Tokenizer
from tercet.service.answers.binary import MEDIA_TYPE
from tercet.service.settings.settings import Settings

TOKENS = 12
RUN = 25  # queries of one kind in a row
WARM_UP_RUNS = 4
ENGINE_QUERIES = 200
RATIO, BUILD_RATIO = 1.3, 2.0
ENGINES: tuple[Engine, ...] = ("native", "onnxruntime")
JSON = "application/json"
SESSION = "session"
BUILD_COPIES = 60  # of Cranfield's abstracts; the job is cancelled
BEGIN_SECONDS = 120.0
BEGUN_SECONDS = 5.0  # of processor time, after which a build encodes

Ask = Callable[[str], object]


def measure(*, quick: bool) -> tuple[dict[str, Any], list[str]]:
    """Figures of each checkpoint, and the bars that were missed."""
    figures = {name: _of_checkpoint(name, 200 if quick else 1500) for name in (ENGLISH, MULTILINGUAL)}
    missed = []
    for name, found in figures.items():
        for when, bar in (("alone", RATIO), ("beside_build", BUILD_RATIO)):
            ratio = found[when]["json_ratio"]
            if ratio > bar:
                missed.append(f"{name}, {when}: {ratio} times the bare encoder, the bar is {bar}")
    return figures, missed


def _of_checkpoint(checkpoint: str, queries: int) -> dict[str, Any]:
    """Figures without and with a build; the ratios of both are to the bare encoder without one."""
    encoder = _fastest(checkpoint)
    sessions = _Sessions(checkpoint, encoder.tokenizer)
    texts = _queries(encoder)
    with tempfile.TemporaryDirectory(prefix="tercet-embed-") as scratch:
        data = Path(scratch)
        cache = Settings.model_fields["query_cache_bytes"].default
        with serving(data, checkpoint=checkpoint, log_level="info", query_cache_bytes=cache) as server:
            alone = _medians(encoder, sessions, server, texts, queries)
            with _building(server, data):
                beside = _medians(encoder, sessions, server, texts, queries)
            _require_no_hits(server)
    found = {
        when: {**times, **_ratios(times, alone["bare_ms"]), **_over_session(times, alone)}
        for when, times in (("alone", alone), ("beside_build", beside))
    }
    for when, values in found.items():
        for name, value in values.items():
            print(f"{checkpoint:10s} {when:12s} {name:18s} {value:8.3f}")
    return {"engine": encoder.info.engine, **found}


def _fastest(checkpoint: str) -> Encoder:
    """The encoder of a checkpoint by the engine that takes least for one query here."""
    encoders: list[Encoder] = []
    for engine in ENGINES:
        try:
            encoders.append(load_encoder(checkpoint, engine))
        except UnsupportedError:
            continue
    texts = _queries(encoders[0])
    some = [next(texts) for _ in range(ENGINE_QUERIES)]

    def seconds(encoder: Encoder) -> float:
        return statistics.median(_seconds(lambda text: encode(encoder, [text], "query"), one) for one in some)

    return min(encoders, key=seconds)


def _queries(encoder: Encoder) -> Iterator[str]:
    """Different queries of 12 tokens, without end, made of the words of Cranfield's."""
    words = sorted({word for text in texts_of("queries") for word in text.split() if word.isalpha()})
    draw = random.Random(0)
    seen: set[str] = set()
    while True:
        text = " ".join(draw.sample(words, draw.randint(TOKENS // 3, TOKENS)))
        if text not in seen and int(encoder.tokenizer.tokenize([text], "query").lengths[0]) == TOKENS:
            seen.add(text)
            yield text


def _medians(
    encoder: Encoder, sessions: _Sessions, server: Server, texts: Iterator[str], queries: int
) -> dict[str, float]:
    """Milliseconds of each kind at the median."""
    with closing(_Client(server)) as client:
        kinds: dict[str, Ask] = {
            "bare": lambda text: encode(encoder, [text], "query"),
            "json": lambda text: client.embed(text, JSON),
            "binary": lambda text: client.embed(text, MEDIA_TYPE),
            "new_connection": lambda text: client.embed(text, JSON, new=True),
            **sessions.kinds,
        }
        taken: dict[str, list[float]] = {kind: [] for kind in kinds}
        for number in range(WARM_UP_RUNS + queries // RUN):
            for kind, ask in kinds.items():
                some = [next(texts) for _ in range(RUN)]  # made before, so that no kind waits for them
                sessions.prepare(some)
                run = [1000 * _seconds(ask, text) for text in some]
                if number >= WARM_UP_RUNS:
                    taken[kind] += run
    return {f"{kind}_ms": round(statistics.median(values), 3) for kind, values in taken.items()}


def _ratios(times: dict[str, float], bare_ms: float) -> dict[str, float]:
    return {name.replace("_ms", "_ratio"): round(value / bare_ms, 2) for name, value in times.items()}


def _over_session(times: dict[str, float], alone: dict[str, float]) -> dict[str, float]:
    """The time of an answer over that of the faster plain session without a build."""
    session_ms = min(value for name, value in alone.items() if name.startswith(SESSION))
    return {"json_over_session": round(times["json_ms"] / session_ms, 2)}


def _seconds(ask: Ask, text: str) -> float:
    started = time.perf_counter()
    ask(text)
    return time.perf_counter() - started


class _Sessions:
    """Plain sessions of a checkpoint's graph. kinds: what runs each on a text that is prepared."""

    def __init__(self, checkpoint: str, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._inputs: dict[str, dict[str, Int64]] = {}
        self.kinds: dict[str, Ask] = {
            f"{SESSION}_{threads}_threads": partial(self._run, session)
            for threads, session in _bare_sessions(checkpoint).items()
        }

    def prepare(self, texts: Sequence[str]) -> None:
        """Tokenizes the texts that are run next."""
        self._inputs = {}
        for text in texts:
            ids, mask = self._tokenizer.tokenize([text], "query").padded(self._tokenizer.pad_id)
            self._inputs[text] = {"input_ids": ids, "attention_mask": mask}

    def _run(self, session: onnxruntime.InferenceSession, text: str) -> object:
        return session.run(list(OUTPUTS), self._inputs[text])


def _bare_sessions(checkpoint: str) -> dict[int, onnxruntime.InferenceSession]:
    """The int8 graph in plain sessions, as whoever has only the graph would run it, by number of threads."""
    folder = resolve_checkpoint(checkpoint, None)
    path = verify_graph(folder, choose_graph(read_export(folder), None, "cpu")[1])
    sessions = {}
    for threads in sorted({1, usable_cores()}):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        providers = ["CPUExecutionProvider"]
        sessions[threads] = onnxruntime.InferenceSession(str(path), options, providers)
    return sessions


class _Client:
    """A connection that is kept, or made anew for a request."""

    def __init__(self, server: Server) -> None:
        address = urlsplit(server.url)
        self._address = address.hostname or "", address.port or 0
        self._head = f"POST /embed HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Type: {JSON}\r\n"
        self._socket = self._connected()

    def close(self) -> None:
        """Ends the kept connection."""
        self._socket.close()

    def embed(self, text: str, accept: str, *, new: bool = False) -> bytes:
        """The body of the answer to one query."""
        body = json.dumps({"inputs": text, "input_type": "query"})
        request = f"{self._head}Accept: {accept}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
        if not new:
            return _exchange(self._socket, request)
        with self._connected() as connection:
            return _exchange(connection, request)

    def _connected(self) -> socket.socket:
        connection = socket.create_connection(self._address, timeout=60)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection


def _exchange(connection: socket.socket, request: bytes) -> bytes:
    """The body of an answer 200 that states its length."""
    connection.sendall(request)
    head, end, body = b"", b"", b""
    while not end:
        head, end, body = (head + _received(connection)).partition(b"\r\n\r\n")
    status, *lines = head.lower().split(b"\r\n")
    assert b" 200 " in status, head
    length = next(int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length:"))
    while len(body) < length:
        body += _received(connection)
    return body


def _received(connection: socket.socket) -> bytes:
    """What came next. Raises ConnectionError where the server has ended the connection."""
    data = connection.recv(1 << 16)
    if not data:
        raise ConnectionError("the server ended the connection, perhaps since it was idle for too long")
    return data


@contextmanager
def _building(server: Server, data: Path) -> Iterator[None]:
    """Meanwhile a job of the server encodes documents."""
    sources = data / "sources"
    sources.mkdir(exist_ok=True)
    with (sources / "texts.jsonl").open("w", encoding="utf-8") as file:
        for copy in range(BUILD_COPIES):
            for row, text in enumerate(texts_of("corpus")):
                file.write(json.dumps({"id": f"{copy}-{row}", "text": f"{copy} {text}"}) + "\n")
    with httpx.Client(base_url=server.url, timeout=60) as http:
        job = http.post("/collections/texts/jobs", json={"source": "texts.jsonl"}).raise_for_status().json()
        give_up = time.monotonic() + BEGIN_SECONDS
        while _build_seconds(server) < BEGUN_SECONDS:
            assert time.monotonic() < give_up, "the build does not begin"
            time.sleep(0.1)
        yield
        assert _job(http, job["id"])["state"] == "running", "the build ended too early"
        http.delete(f"/jobs/{job['id']}").raise_for_status()


def _build_seconds(server: Server) -> float:
    """Processor time of the server's children, which are its builds."""
    times = [child.cpu_times() for child in server.process.children()]
    return float(sum(each.user + each.system for each in times))


def _job(http: httpx.Client, job_id: str) -> dict[str, Any]:
    found: dict[str, Any] = http.get(f"/jobs/{job_id}").raise_for_status().json()
    assert found["state"] in ("queued", "running"), found
    return found


def _require_no_hits(server: Server) -> None:
    metrics = httpx.get(f"{server.url}/metrics").raise_for_status().text
    assert 'tercet_query_cache_lookups_total{result="hit"} 0.0' in metrics, "queries came from the cache"
