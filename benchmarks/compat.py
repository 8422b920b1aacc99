"""What does OpenAI's route cost beside the dense encoding of its texts?

A server of its own process answers `POST /v1/embeddings` of 32 passages, as floats and as base64, and
`/embed` as one binary body with the dense vectors alone. Between them this process encodes the same texts
itself, with the same engine and threads. A route's cost is its median beside that of this encoding. The
client is the plainest there is, so that what it takes itself counts little. Since other work on a machine
disturbs either, the cost is also measured within the server: of each request, the time that a client waits
less the time that the server counts for its batches, which leaves tokenizing in it.

Run: python -m benchmarks.compat [--rounds 100]
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import httpx

from benchmarks.recording import dated, machine, write
from benchmarks.serving.server import DEMO, serving
from tercet.models.encoder import encode
from tercet.models.loader import load_encoder

TEXTS = 32
WARM = 5
ADDED_MS = 3.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=100)
    rounds: int = parser.parse_args().rounds
    lines = (DEMO / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    documents = [json.loads(line) for line in lines]
    texts = [each["text"] for each in documents if each["metadata"]["lang"] == "en"][:TEXTS]
    before = machine()
    with tempfile.TemporaryDirectory(prefix="tercet-compat-") as data, serving(Path(data)) as server:
        figures = measured(server.url, texts, rounds)
    record = {
        "texts": TEXTS,
        "rounds": rounds,
        **figures,
    }
    print(json.dumps(record, indent=2))
    write("compat", dated(record, before))
    for name in ("float", "base64"):
        added = figures[name]["added_ms"]
        assert added <= ADDED_MS, f"{name} adds {added} ms, not {ADDED_MS:g}"


def measured(url: str, texts: list[str], rounds: int) -> dict[str, Any]:
    """Medians of all kinds, whose requests alternate."""
    encoder = load_encoder("minilm-m3")
    connection = HTTPConnection(url.removeprefix("http://"), timeout=60)

    def post(path: str, body: dict[str, Any], accept: str = "*/*") -> Callable[[], None]:
        content = json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "Accept": accept, "Accept-Encoding": "gzip"}

        def asked() -> None:
            connection.request("POST", path, content, headers)
            answer = connection.getresponse()
            assert answer.read()
            assert answer.status == 200

        return asked

    kinds = {
        name: post("/v1/embeddings", {"input": texts, "encoding_format": name})
        for name in ("float", "base64")
    }
    embed = {"inputs": texts, "outputs": ["dense"]}
    kinds["embed_binary"] = post("/embed", embed, "application/x-safetensors")
    with httpx.Client(base_url=url, timeout=60) as client:
        times: dict[str, list[float]] = {name: [] for name in ("encoding", *kinds)}
        beside: dict[str, list[float]] = {name: [] for name in kinds}
        tokens = 0
        for turn in range(WARM + rounds):
            for name, ask in kinds.items():
                counted = batch_seconds(client)
                seconds = timed(ask)
                if turn >= WARM:
                    times[name].append(seconds)
                    beside[name].append(seconds - (batch_seconds(client) - counted))
            started = time.perf_counter()
            encoded = encode(encoder, texts, "document", ["dense"])
            if turn >= WARM:
                times["encoding"].append(time.perf_counter() - started)
            tokens = int(encoded.tokens.sum())
    alone = statistics.median(times["encoding"])
    figures: dict[str, Any] = {"tokens": tokens, "encoding_median_ms": round(alone * 1e3, 2)}
    for name in kinds:
        median = statistics.median(times[name])
        figures[name] = {
            "median_ms": round(median * 1e3, 2),
            "added_ms": round((median - alone) * 1e3, 2),
            "beside_batches_median_ms": round(statistics.median(beside[name]) * 1e3, 2),
        }
    return figures


def timed(call: Callable[[], None]) -> float:
    """Seconds that a call takes."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def batch_seconds(client: httpx.Client) -> float:
    """What the server has counted for encoding so far."""
    for line in client.get("/metrics").text.splitlines():
        if line.startswith("tercet_batch_seconds_sum"):
            return float(line.rsplit(" ", 1)[1])
    return 0.0


if __name__ == "__main__":
    main()
