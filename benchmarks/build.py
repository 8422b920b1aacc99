"""Memory and speed of building a collection, and whether serving it copies memory-mapped arrays.

Builds passages of ../shared/data/scale-mix in a fixed random order (synthetic text where that is absent)
through `tercet collection build` in a child process, and samples its memory. Another process encodes the same
texts, sorted by length, and does nothing else: `share_of_encoding` is how near the build comes to that speed,
by the clock and by processor time; a rebuild learns no codebook. Then one opens the collection and searches
it; its anonymous memory grows by what it copies, for mapped files are not counted.

Run: python -m benchmarks.build [--passages 50000] [--checkpoint minilm-m3] [--token-codec int8]
     [--output FILE]
"""

import argparse
import gzip
import json
import multiprocessing
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import psutil

from benchmarks.recording import DATA, ROOT, dated, write
from benchmarks.serving.server import build_command

SCALE_MIX = DATA / "scale-mix" / "corpus.jsonl.gz"
PEAK_LIMIT_BYTES = 1.5e9
SEED = 7
SEARCHES = 200
TEXTS_AT_ONCE = 256


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--passages", type=int, default=50_000)
    parser.add_argument("--checkpoint", default=str(ROOT / "checkpoints" / "minilm-m3"))
    parser.add_argument("--token-codec", default="int8")
    parser.add_argument("--output", default="build", help="the name of the result")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tercet-build-") as folder:
        data = Path(folder)
        corpus = data / "passages.jsonl"
        origin = write_passages(corpus, asked.passages)
        record = {
            "passages": asked.passages,
            "token_codec": asked.token_codec,
            "origin": origin,
            "source_bytes": corpus.stat().st_size,
            "build": build(data, corpus, asked.checkpoint, asked.token_codec),
            "rebuild": build(data, corpus, asked.checkpoint, asked.token_codec),
            "encode": in_fresh_process(measure_encoding, data, corpus, asked.checkpoint),
            "serve": in_fresh_process(measure_serving, data, corpus, asked.checkpoint),
        }
        record["share_of_encoding"] = {
            f"{work}_{unit}": round(record[work][unit] / record["encode"][unit], 3)
            for work in ("build", "rebuild")
            for unit in ("tokens_per_second", "tokens_per_cpu_second")
        }
    write(asked.output, dated(record))
    print(json.dumps(record, indent=2))
    assert record["build"]["peak_rss_bytes"] < PEAK_LIMIT_BYTES, "the build used more than 1.5 GB"
    assert record["serve"]["copied_bytes"] < record["serve"]["array_bytes"] / 4, "serving copies arrays"


def write_passages(path: Path, count: int) -> str:
    """The first `count` passages after a shuffle with a fixed seed; returns where they come from."""
    if SCALE_MIX.is_file():
        with gzip.open(SCALE_MIX, "rt", encoding="utf-8") as file:
            lines = [line if line.endswith("\n") else line + "\n" for line in file]
        random.Random(SEED).shuffle(lines)
        path.write_text("".join(lines[:count]), encoding="utf-8")
        return "scale-mix"
    words = random.Random(SEED)
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            text = " ".join(f"w{min(int(words.paretovariate(0.8)), 50_000)}" for _ in range(60))
            file.write(json.dumps({"id": str(number), "text": text}) + "\n")
    return "synthetic"


def build(data: Path, corpus: Path, checkpoint: str, token_codec: str) -> dict[str, float]:
    """Builds in a child and samples its resident memory, mapped files included."""
    command = build_command(corpus, "passages", "--data", str(data), "--checkpoint", checkpoint)
    if not (data / "collections").exists():
        command += ["--token-codec", token_codec]
    started, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    child = subprocess.Popen(
        [*command, "--progress", "json"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    process = psutil.Process(child.pid)
    anonymous = 0
    last = ""
    assert child.stdout is not None
    for line in child.stdout:
        last = line
        anonymous = max(anonymous, anonymous_bytes(process.pid))
        progress = json.loads(line)
        print(f"{progress['documents_done']:,} documents, {anonymous / 1e6:,.0f} MB anonymous", flush=True)
    if child.wait() != 0:
        sys.exit("the build failed")
    seconds = time.monotonic() - started
    done = json.loads(last)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_seconds = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    return {
        "seconds": round(seconds, 1),
        "documents_per_second": round(done["documents_done"] / done["seconds"], 1),
        "tokens_per_second": round(done["tokens"] / done["seconds"], 1),
        "tokens_per_cpu_second": round(done["tokens"] / cpu_seconds, 1),
        "tokens": done["tokens"],
        "peak_rss_bytes": used.ru_maxrss * 1024,
        "peak_anonymous_bytes": anonymous,
    }


def in_fresh_process(
    measure: Callable[[Path, Path, str], dict[str, float]], data: Path, corpus: Path, checkpoint: str
) -> dict[str, float]:
    """What is measured, in a process that has done nothing else."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(measure, data, corpus, checkpoint).result()


def measure_encoding(data: Path, corpus: Path, checkpoint: str) -> dict[str, float]:
    """The speed of encoding what the build encoded, sorted by length, and nothing else."""
    from tercet.index.collection import Collection
    from tercet.ingest.document_windows import cutter_for, encoded_texts
    from tercet.ingest.sources.reader import DocumentReader
    from tercet.models.encoder import encode
    from tercet.models.loader import load_encoder

    encoder = load_encoder(checkpoint)
    settings = Collection.open(data / "collections", "passages").settings
    cutter = cutter_for(settings, encoder.tokenizer)
    texts = [text.text for document in DocumentReader(corpus) for text in encoded_texts(document, cutter)]
    texts.sort(key=len)
    encode(encoder, texts[:TEXTS_AT_ONCE])
    cpu, clock = time.process_time(), time.monotonic()
    tokens = 0
    for first in range(0, len(texts), TEXTS_AT_ONCE):
        tokens += int(encode(encoder, texts[first : first + TEXTS_AT_ONCE]).tokens.sum())
    return {
        "tokens": tokens,
        "tokens_per_second": round(tokens / (time.monotonic() - clock), 1),
        "tokens_per_cpu_second": round(tokens / (time.process_time() - cpu), 1),
    }


def measure_serving(data: Path, corpus: Path, checkpoint: str) -> dict[str, float]:
    """What opening and searching the collection adds to a process. Texts of the corpus are the queries."""
    from tercet.index.collection import Collection
    from tercet.ingest.build import build_collection
    from tercet.ingest.document_encoders import LocalDocuments
    from tercet.models.encoder import encode
    from tercet.models.loader import load_encoder

    with corpus.open(encoding="utf-8") as file:
        texts = [json.loads(line)["text"][:100] for _, line in zip(range(SEARCHES), file, strict=False)]
    encoder = load_encoder(checkpoint)
    queries = [encode(encoder, [text], "query") for text in texts]
    # A small collection first, for the compiled code that every process loads is no copy of arrays.
    with (data / "few.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps({"id": str(n), "text": text}) + "\n" for n, text in enumerate(texts))
    build_collection(LocalDocuments(encoder), data / "few", "few", data / "few.jsonl")
    few = Collection.open(data / "few", "few").snapshot()
    few.search(queries[0])
    before = anonymous_bytes(os.getpid())
    snapshot = Collection.open(data / "collections", "passages").snapshot()
    opened = anonymous_bytes(os.getpid())
    snapshot.search(queries[0])
    warm = anonymous_bytes(os.getpid())
    started = time.perf_counter()
    for query in queries:
        snapshot.search(query)
    seconds = time.perf_counter() - started
    after = anonymous_bytes(os.getpid())
    arrays = sum(path.stat().st_size for path in (data / "collections").rglob("*") if path.is_file())
    return {
        "array_bytes": arrays,
        "opened_bytes": opened - before,
        "first_search_bytes": warm - opened,
        "later_searches_bytes": after - warm,
        "copied_bytes": after - before,
        "mean_search_ms": round(seconds / len(queries) * 1000, 3),
    }


def anonymous_bytes(pid: int) -> int:
    """Memory of a process that no file backs; 0 once it has ended."""
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    except OSError:
        return 0
    return int(next(line for line in rollup.splitlines() if line.startswith("Anonymous")).split()[1]) * 1024


if __name__ == "__main__":
    main()
