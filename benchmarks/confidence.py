"""Is a confidence of 0.8 right four times of five, and does a search say that nothing answers?

With --fit the calibration of a checkpoint that comes with the project is fitted anew on training pairs, and
written into its folder. Documents of a set are the passages of so many pairs, and queries of other sets are
those that nothing answers. Of test sets the documents that answer the chosen queries are there, and others.
Then it is measured on sets that it was not fitted on: the expected calibration error over the ten best hits,
and over the best hits alone, of queries with and without an answer, as much of each; and the share of queries
without an answer that are told at the threshold that keeps 95% of the others, of the set itself and of the
checkpoint.

Run: python -m benchmarks.confidence [--checkpoint minilm-m3] [--fit]
"""

import argparse
import gzip
import json
import random
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.recording import DATA, ROOT, dated, write
from tercet.evaluation.beir import read_dataset
from tercet.evaluation.calibrating import (
    Examples,
    ExampleSet,
    best_confidences,
    calibration_error,
    fitted,
    kept_threshold,
)
from tercet.index.catalog.calibration import Calibration
from tercet.index.collection import Collection
from tercet.index.snapshot import Snapshot
from tercet.ingest.build import build_collection
from tercet.ingest.document_encoders import LocalDocuments
from tercet.models.checkpoint import SHIPPED
from tercet.models.encoder import Encoder, encode
from tercet.models.loader import load_encoder
from tercet.service.search.calibrations import CheckpointCalibration

ERROR_BAR = 0.05  # of the hits
TOLD_BAR = 0.7
SEED = 7


@dataclass(frozen=True, slots=True)
class Plan:
    """Sets to fit on and to measure on, each with the sets whose queries nothing answers there."""

    training: Mapping[str, tuple[str, ...]]
    tests: Mapping[str, tuple[str, ...]]


PLANS = {
    "minilm-m3": Plan(
        {
            "acl-anthology": ("msdocs-en", "squadshifts-reddit"),
            "msdocs-en": ("acl-anthology", "squadshifts-reddit"),
            "squad-sentences": ("squadshifts-reddit", "acl-anthology"),
            "squadshifts-reddit": ("squad-sentences", "msdocs-en"),
        },
        {
            "xquad-en": ("squadshifts-new-wiki", "scifact"),
            "squadshifts-new-wiki": ("xquad-en", "scifact"),
            "cacm": ("cranfield", "lisa"),
            "cranfield": ("cacm", "npl"),
            "scifact": ("xquad-en", "cranfield"),
            "time": ("lisa", "squadshifts-new-wiki"),
        },
    ),
    "multi-m3": Plan(
        {
            "acl-anthology": ("msdocs-en", "squadshifts-reddit"),
            "squadshifts-reddit": ("squad-sentences", "msdocs-en"),
            "squad-sentences": ("squadshifts-reddit", "acl-anthology"),
            "msdocs-ko": ("petitions-ko", "welfare-ko"),
            "welfare-ko": ("petitions-ko", "msdocs-ko"),
            "jaquad-train": ("cmrc2018-trial", "squad-sentences"),
            "cmrc2018-trial": ("drcd-test-as-train", "jaquad-train"),
            "drcd-test-as-train": ("cmrc2018-trial", "welfare-ko"),
        },
        {
            "squadshifts-new-wiki": ("xquad-en", "scifact"),
            "korquad1-dev": ("msmarco-ko", "jaquad-dev"),
            "cmrc2018-dev": ("xquad-zh", "jaquad-dev"),
            "arcd": ("xquad-tr", "msmarco-ko"),
            "xquad-ru": ("arcd", "squadshifts-new-wiki"),
            "xquad-de": ("squadshifts-new-wiki", "cmrc2018-dev"),
        },
    ),
}


@dataclass(frozen=True, slots=True)
class JudgedTexts:
    """Documents and queries by id, and the ids of the documents that answer each query."""

    documents: Mapping[str, str]
    queries: Mapping[str, str]
    answers: Mapping[str, frozenset[str]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--checkpoint", choices=SHIPPED, default="minilm-m3")
    parser.add_argument("--fit", action="store_true", help="fit anew before it is measured")
    parser.add_argument("--queries", type=int, default=200, help="of a set at most")
    parser.add_argument("--documents", type=int, default=1500, help="of a set at most")
    asked = parser.parse_args()
    encoder, plan = load_encoder(asked.checkpoint), PLANS[asked.checkpoint]
    folder = ROOT / "checkpoints" / asked.checkpoint
    if asked.fit:
        training = {
            name: training_texts(name, asked.documents, asked.queries)
            for name in {*plan.training, *(name for names in plan.training.values() for name in names)}
        }
        sets = [examples_of(training, name, others, encoder) for name, others in plan.training.items()]
        CheckpointCalibration(
            encoder.info.fingerprint, encoder.info.lexical, fitted(sets), tuple(plan.training)
        ).write(folder)
    stored = CheckpointCalibration.read(folder)
    assert stored.fingerprint == encoder.info.fingerprint, "it is for another fingerprint; run with --fit"
    calibration, results = stored.calibration, {}
    print(f"{asked.checkpoint}: {calibration}")
    print("                       P@1  error: hits, best  told at 95%  checkpoint's: kept, told")
    for name, others in plan.tests.items():
        texts = {each: test_texts(each, asked.documents, asked.queries) for each in (name, *others)}
        results[name] = measured(calibration, examples_of(texts, name, others, encoder))
        print(line_of(name, results[name]), flush=True)
        record = {
            "checkpoint": asked.checkpoint,
            "fingerprint": stored.fingerprint,
            "fitted_on": stored.sets,
            "sets": results,
        }
        write(f"confidence-{asked.checkpoint}", dated(record))
    missed = [
        name
        for name, found in results.items()
        if found["error_of_hits"] > ERROR_BAR or found["told"] < TOLD_BAR
    ]
    assert not missed, f"an error above {ERROR_BAR}, or less than {TOLD_BAR} told: {missed}"


def training_texts(name: str, documents: int, queries: int) -> JudgedTexts:
    """So many passages of training pairs, and queries that they answer."""
    with gzip.open(DATA / "train" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        pairs = [json.loads(line) for line in file]
    random.Random(SEED).shuffle(pairs)
    ids: dict[str, str] = {}
    texts: dict[str, str] = {}
    answers: dict[str, frozenset[str]] = {}
    for pair in pairs:
        new = [passage for passage in pair["pos"] if passage not in ids]
        if new and len(ids) + len(new) > documents:
            continue
        ids |= {passage: f"d{len(ids) + number}" for number, passage in enumerate(new)}
        if len(texts) < queries:
            texts[f"q{len(texts)}"] = pair["query"]
            answers[f"q{len(answers)}"] = frozenset(ids[passage] for passage in pair["pos"])
    return JudgedTexts({id: passage for passage, id in ids.items()}, texts, answers)


def test_texts(name: str, documents: int, queries: int) -> JudgedTexts:
    """A set of the test data, with so many of its queries, what answers them, and other documents."""
    dataset, draws = read_dataset(DATA / name), random.Random(SEED)
    some = draws.sample(sorted(dataset.queries), min(queries, len(dataset.queries)))
    answers = {id: frozenset(d for d, grade in dataset.qrels[id].items() if grade > 0) for id in some}
    texts = {document.id: document.encoded_text for document in dataset.corpus}
    wanted = frozenset[str]().union(*answers.values())
    others = sorted(texts.keys() - wanted)
    kept = wanted.union(draws.sample(others, min(len(others), max(0, documents - len(wanted)))))
    return JudgedTexts(
        {id: text for id, text in texts.items() if id in kept},
        {id: dataset.queries[id] for id in some},
        answers,
    )


def examples_of(
    texts: Mapping[str, JudgedTexts], name: str, others: tuple[str, ...], encoder: Encoder
) -> ExampleSet:
    """Hits of a set's queries in its documents, and of half as many queries of each of the others."""
    own = texts[name]
    with tempfile.TemporaryDirectory(prefix="tercet-confidence-") as scratch:
        root, source = Path(scratch), Path(scratch) / "documents.jsonl"
        with source.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps({"id": id, "text": text}) + "\n" for id, text in own.documents.items())
        build_collection(LocalDocuments(encoder), root, "set", source)
        snapshot = Collection.open(root, "set").snapshot()
        count = max(1, len(own.queries) // len(others))
        unanswered = [query for other in others for query in list(texts[other].queries.values())[:count]]
        answers = [own.answers[id] for id in own.queries]
        found = ExampleSet(
            hits_of(snapshot, encoder, list(own.queries.values()), answers),
            hits_of(snapshot, encoder, unanswered, [frozenset[str]()] * len(unanswered)),
        )
        snapshot.close()
    return found


def hits_of(
    snapshot: Snapshot, encoder: Encoder, queries: list[str], answers: list[frozenset[str]]
) -> list[Examples]:
    """The best hits of each query, and which of them answer."""
    encoded, found = encode(encoder, queries, "query"), []
    for row, right in enumerate(answers):
        query = encoded.take(np.array([row], np.int64))
        assert query.colbert is not None
        ids, scores = snapshot.score(query, snapshot.retrieve(query))
        relevant = np.array([id in right for id in ids], np.bool_)
        found.append(Examples.of(scores[:, :3], relevant, int(query.colbert.offsets[-1])))
    return found


def measured(calibration: Calibration, examples: ExampleSet) -> dict[str, Any]:
    """Figures of one set."""
    queries, weights = examples.queries, examples.weights
    sizes = [len(query.answers) for query in queries]
    every = calibration.confidences(np.concatenate([query.features for query in queries]))
    answers = np.concatenate([query.answers for query in queries]).astype(np.float64)
    firsts = np.array([query.answers[:1].any() for query in queries], np.float64)
    answered, unanswered = (
        best_confidences(calibration, some) for some in (examples.answered, examples.unanswered)
    )
    threshold = kept_threshold(answered)
    figures = {
        "precision_at_1": firsts[: len(answered)].mean(),
        "error_of_hits": calibration_error(every, answers, np.repeat(weights, sizes)),
        "error_of_best_hits": calibration_error(np.append(answered, unanswered), firsts, weights),
        "threshold": threshold,
        "told": np.mean(unanswered < threshold),
        "kept_by_checkpoint": np.mean(answered >= calibration.threshold),
        "told_by_checkpoint": np.mean(unanswered < calibration.threshold),
    }
    counts = {"answered": len(answered), "unanswered": len(unanswered)}
    return counts | {name: round(float(value), 4) for name, value in figures.items()}


def line_of(name: str, found: Mapping[str, Any]) -> str:
    return (
        f"{name:20} {found['precision_at_1']:.3f}  {found['error_of_hits']:.3f}  "
        f"{found['error_of_best_hits']:.3f}  {found['told']:.3f}  "
        f"{found['kept_by_checkpoint']:.3f}  {found['told_by_checkpoint']:.3f}"
    )


if __name__ == "__main__":
    main()
