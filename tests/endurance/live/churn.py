"""Does a live collection stay as small and as good as a build of the same documents, after rounds of writes?

It begins with the documents of a judged collection. Each of 25 rounds puts 1,000 documents, of which 500 are
passages of no judgment and 500 are those that the round before deleted; and it deletes 500 of the judged
ones. What the last round deleted is put once more, so that queries can be judged. Flushes and merges run by
themselves, with a limit low enough that there are many. Then the same documents are built at once. Measured
are the memory of a process that opens either and answers all queries, and of the one that wrote; the bytes
on the disk; nDCG@10; and the time of a search.

Run: python -m tests.endurance.live.churn [--set npl] [--rounds 25] [--work FOLDER]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import pickle
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import scale
from benchmarks.dense import private_bytes
from benchmarks.recording import ROOT
from tercet.evaluation.beir import read_dataset
from tercet.evaluation.metrics import measure
from tercet.index.candidates import Document
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.collection import Collection
from tercet.index.live.collection import LiveCollection
from tercet.index.live.records import LiveLimits
from tercet.index.token_codecs import RESIDUAL_BITS, TokenCodec
from tercet.index.token_vectors.codebook_training import train_codebook
from tercet.ingest.target import settings_for
from tercet.models.checkpoint import SHIPPED
from tercet.models.encoder import encode
from tercet.models.loader import load_encoder
from tercet.models.representations import Representations

DATA = ROOT.parent / "shared" / "data"
CODEC: TokenCodec = "residual1"
SAMPLE = 2_000  # documents that the codebook is learned from
PUT, DELETED = 1000, 500
LIMITS = LiveLimits(flush_documents=2_000)
PASSES = 3
TIMES, DIFFERENCE = 1.1, 0.002


@dataclass(frozen=True, slots=True)
class Batch:
    """Documents and what they are encoded to, as a file has them, so that a process holds one at a time."""

    documents: list[Document]
    encoded: Representations

    def write(self, file: Path) -> None:
        file.write_bytes(pickle.dumps(self))

    @staticmethod
    def read(file: Path) -> Batch:
        batch: Batch = pickle.loads(file.read_bytes())  # noqa: S301 - this script wrote it
        return batch


def rounds_of(judged: Batch, others: Batch, rounds: int, folder: Path) -> None:
    """Writes what each round puts, and the ids that it deletes; and all there is in the end."""
    random, back = np.random.default_rng(0), np.empty(0, np.int64)
    first = 0
    for number in range(rounds + 1):
        last = first + (PUT - len(back) if number < rounds else 0)
        taken = np.arange(first, last)
        Batch(
            [judged.documents[row] for row in back] + others.documents[first:last],
            Representations.concatenate([judged.encoded.take(back), others.encoded.take(taken)]),
        ).write(folder / f"put{number}")
        back, first = random.choice(len(judged.documents), DELETED, replace=False), last
        deleted = [judged.documents[row].id for row in back] if number < rounds else []
        (folder / f"deleted{number}").write_text(json.dumps(deleted), encoding="utf-8")
    judged.write(folder / "begun")
    Batch(
        judged.documents + others.documents[:first],
        Representations.concatenate([judged.encoded, others.encoded.take(np.arange(first))]),
    ).write(folder / "all")


def written_live(folder: Path, rounds: int) -> dict[str, float]:
    """Carries the rounds out; what the process holds after them, and the seconds that they took."""
    with LiveCollection(Collection.open(folder, "live"), LIMITS) as live:
        begun = Batch.read(folder / "begun")
        for start in range(0, len(begun.documents), PUT):
            rows = np.arange(start, min(start + PUT, len(begun.documents)))
            live.put([begun.documents[row] for row in rows], begun.encoded.take(rows))
        del begun
        live.flush()
        before, started = private_bytes(), time.perf_counter()
        for number in range(rounds + 1):
            batch = Batch.read(folder / f"put{number}")
            live.put(batch.documents, batch.encoded)
            deleted = json.loads((folder / f"deleted{number}").read_text(encoding="utf-8"))
            if deleted:
                live.delete(deleted)
        live.flush()
        live.merge()
        del batch
        return {
            "seconds": time.perf_counter() - started,
            "private_bytes_before": before,
            "private_bytes_after": private_bytes(),
        }


def built(folder: Path) -> dict[str, float]:
    """Builds what is there in the end at once."""
    everything, started = Batch.read(folder / "all"), time.perf_counter()
    with Collection.open(folder, "built").writer() as writer:
        writer.add(everything.documents, everything.encoded)
        writer.publish()
    return {"seconds": time.perf_counter() - started}


def measured(folder: Path, name: str) -> dict[str, Any]:
    """What a process holds that has answered all queries, the bytes of the files, and the answers."""
    queries: Representations = pickle.loads((folder / "queries").read_bytes())  # noqa: S301 - as above
    before = private_bytes()
    snapshot = Collection.open(folder, name).snapshot()
    rows = [queries.take(np.array([row])) for row in range(len(queries))]
    times, found = np.full(len(rows), np.inf), []
    for number in range(PASSES):
        for row, query in enumerate(rows):
            started = time.perf_counter()
            hits = snapshot.search(query, contents=False).hits
            times[row] = min(times[row], 1000 * (time.perf_counter() - started))
            if number == 0:
                found.append([hit.document.id for hit in hits])
    return {
        "private_bytes": private_bytes() - before,
        "file_bytes": scale.size_of(folder / name),
        "median_ms": float(np.median(times)),
        "found": found,
    }


def apart(work: Callable[..., dict[str, Any]], *arguments: object) -> dict[str, Any]:
    """In a process of its own, whose memory begins anew."""
    with multiprocessing.get_context("spawn").Pool(1) as processes:
        return processes.apply(work, arguments)


def prepare(folder: Path, name: str, rounds: int) -> tuple[dict[str, dict[str, int]], list[str]]:
    """Writes what is put, deleted and asked, and two empty collections. Returns judgments and query ids."""
    encoder, dataset = load_encoder(str(ROOT / "checkpoints" / SHIPPED[0])), read_dataset(DATA / name)
    documents = list(dataset.corpus)
    judged = Batch(documents, encode(encoder, [each.encoded_text for each in documents]))
    texts = scale.passages()[0][: rounds * (PUT - DELETED) + DELETED]
    named = [Document(f"other{number:05}", text) for number, text in enumerate(texts)]
    rounds_of(judged, Batch(named, encode(encoder, texts)), rounds, folder)
    queries = encode(encoder, list(dataset.queries.values()), "query")
    (folder / "queries").write_bytes(pickle.dumps(queries))
    sample = np.random.default_rng(0).permutation(len(judged.documents))[:SAMPLE]
    tokens = judged.encoded.colbert
    assert tokens is not None
    codebook = train_codebook(tokens.take(sample).vectors, RESIDUAL_BITS[CODEC])
    for collection in ("live", "built"):
        settings: CollectionSettings = settings_for(
            collection, encoder.info, {"token_codec": CODEC, "codebook": codebook}
        )
        Collection.create(folder, collection, settings)
    return {query: dict(grades) for query, grades in dataset.qrels.items()}, list(dataset.queries)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--set", default="npl", help="a judged collection")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--work", type=Path, default=Path(), help="where collections are written")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.work.resolve(), prefix="churn-") as work:
        folder = Path(work)
        qrels, query_ids = prepare(folder, asked.set, asked.rounds)
        writing = apart(written_live, folder, asked.rounds)
        apart(built, folder)
        answers = {name: apart(measured, folder, name) for name in ("live", "built")}
    for each in answers.values():
        each["nDCG@10"] = measure(qrels, dict(zip(query_ids, each.pop("found"), strict=True)))["nDCG@10"]
    live, fresh = answers["live"], answers["built"]
    ratios = {part: live[part] / fresh[part] for part in ("private_bytes", "file_bytes", "median_ms")}
    record = {
        "set": asked.set,
        "rounds": asked.rounds,
        "bars": {"memory": TIMES, "nDCG@10": DIFFERENCE},
        "writing": writing,
        **answers,
        "live_to_built": ratios,
    }
    print(json.dumps(record, indent=2))
    missed = [f"memory {ratios['private_bytes']:.2f} times"] if ratios["private_bytes"] > TIMES else []
    if abs(live["nDCG@10"] - fresh["nDCG@10"]) > DIFFERENCE:
        missed.append(f"nDCG@10 {live['nDCG@10']:.4f} beside {fresh['nDCG@10']:.4f}")
    if missed:
        sys.exit("missed: " + "; ".join(missed))


if __name__ == "__main__":
    main()
