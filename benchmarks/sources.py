"""How fast sources of a gigabyte are read, in what memory, and what that costs a build.

Writes passages of ../shared/data/scale-mix (synthetic text where that is absent), again and again under new
ids, as one CSV file, as JSONL, and as nested Parquet folders (`lang=…/part=…`, rows of structs with lists).
Each is read to its end in a process of its own, as a build reads it. The first documents of each are encoded
by an encoder beside it: reading may take a twentieth of that time.

Run: python -m benchmarks.sources [--megabytes 1000] [--checkpoint minilm-m3]
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import multiprocessing
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.build import write_passages
from benchmarks.recording import dated, write

PASSAGES = 100_000
ENCODED = 400
LANGUAGES = ("de", "en", "ko")
PART_ROWS = 50_000
SHARE = 0.05  # of the encoding's time, that reading may take
LIMIT_BYTES = 500e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--checkpoint", default="minilm-m3")
    asked = parser.parse_args()
    rows, size = [], asked.megabytes * 10**6
    with tempfile.TemporaryDirectory(prefix="tercet-sources-") as name:
        folder = Path(name)
        origin = write_passages(folder / "passages.jsonl", PASSAGES)
        with (folder / "passages.jsonl").open(encoding="utf-8") as file:
            texts = [json.loads(line)["text"] for line in file]
        for kind, write_file in WRITERS.items():
            source = write_file(folder / kind, texts, size)
            with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
                rows.append({"kind": kind, **pool.submit(measure, source, asked.checkpoint).result()})
            print(line_of(rows[-1]), flush=True)
    record = {
        "origin": origin,
        "checkpoint": asked.checkpoint,
        "sources": rows,
    }
    write("sources", dated(record))
    for row in rows:
        assert row["peak_anonymous_bytes"] < LIMIT_BYTES, f"{row['kind']} took more than 500 MB"
        assert row["speed_of_encoding"] >= 1 - SHARE, f"reading {row['kind']} slows a build by more than 5%"


def line_of(row: dict[str, Any]) -> str:
    return (
        f"{row['kind']:<12} {row['bytes'] / 1e6:7,.0f} MB {row['documents']:9,} documents "
        f"{row['megabytes_per_second']:7.1f} MB/s  peak {row['peak_anonymous_bytes'] / 1e6:5.0f} MB  "
        f"a build runs at {row['speed_of_encoding']:.3f} of the encoding's speed"
    )


def documents(texts: list[str]) -> Iterator[tuple[int, str]]:
    """Texts under new numbers, without end."""
    return enumerate(itertools.cycle(texts))


def write_csv(path: Path, texts: list[str], size: int) -> Path:
    path.mkdir()
    path /= "passages.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["doc_id", "body", "lang", "year"])
        for number, text in documents(texts):
            writer.writerow([f"d{number}", text, LANGUAGES[number % 3], 1990 + number % 30])
            if number % 1000 == 0 and file.tell() >= size:
                return path
    raise AssertionError


def write_lines(path: Path, texts: list[str], size: int) -> Path:
    path.mkdir()
    path /= f"passages.{path.name}"
    written = 0
    with path.open("w", encoding="utf-8") as file:
        for number, text in documents(texts):
            line = json.dumps({"_id": f"d{number}", "text": text, "year": 1990 + number % 30}) + "\n"
            file.write(line)
            written += len(line.encode())
            if written >= size:
                return path
    raise AssertionError


def write_parquet(path: Path, texts: list[str], size: int) -> Path:
    """Folders of partitions, with rows of structs; `size` counts the text that is in them."""
    written, part = 0, 0
    found = documents(texts)
    while written < size:
        rows = list(itertools.islice(found, PART_ROWS))
        folder = path / f"lang={LANGUAGES[part % 3]}" / f"part={part}"
        folder.mkdir(parents=True)
        table = pa.table(
            {
                "doc_id": [f"d{number}" for number, _ in rows],
                "contents": [text for _, text in rows],
                "metadata": [
                    {"year": 1990 + number % 30, "tags": ["a", "b"][: number % 3], "at": None}
                    for number, _ in rows
                ],
            }
        )
        pq.write_table(table, folder / "part-0.parquet", row_group_size=10_000)
        written += sum(len(text.encode()) for _, text in rows)
        part += 1
    return path


WRITERS: dict[str, Callable[[Path, list[str], int], Path]] = {
    "csv": write_csv,
    "jsonl": write_lines,
    "parquet": write_parquet,
}


def measure(source: Path, checkpoint: str) -> dict[str, Any]:
    """Reads a source to its end and encodes its first documents. Runs in a process of its own."""
    from tercet.ingest.sources.reader import DocumentReader
    from tercet.models.encoder import encode
    from tercet.models.loader import load_encoder

    with Peak() as peak:
        started = time.perf_counter()
        count = characters = 0
        for document in DocumentReader(source):
            count += 1
            characters += len(document.text)
        seconds = time.perf_counter() - started
    encoder = load_encoder(checkpoint)
    texts = [document.text for document in itertools.islice(DocumentReader(source), ENCODED)]
    encode(encoder, texts[:32], "document")
    started = time.perf_counter()
    for start in range(0, len(texts), 32):
        encode(encoder, texts[start : start + 32], "document")
    encoding = (time.perf_counter() - started) / len(texts) * count
    size = sum(path.stat().st_size for path in DocumentReader(source).files)
    return {
        "bytes": size,
        "documents": count,
        "characters": characters,
        "read_seconds": round(seconds, 2),
        "megabytes_per_second": round(size / 1e6 / seconds, 1),
        "peak_anonymous_bytes": peak.bytes,
        "encode_seconds": round(encoding),
        "speed_of_encoding": round(encoding / (encoding + seconds), 4),
    }


class Peak:
    """The most anonymous memory of this process and its children together, while it lasts."""

    def __init__(self) -> None:
        self.bytes = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        process = psutil.Process()
        while not self._ended.wait(0.05):
            total = 0
            for each in [process, *process.children(recursive=True)]:
                try:
                    memory = each.memory_info()
                except psutil.NoSuchProcess:
                    continue
                total += memory.rss - memory.shared
            self.bytes = max(self.bytes, total)


if __name__ == "__main__":
    main()
