"""Tuning a collection whose sparse side alone is right: what is reported, stored and refused."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import astuple
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer as Vocabulary
from tokenizers import models, pre_tokenizers, processors

from tercet.evaluation.errors import DatasetError, TuningError
from tercet.evaluation.tune import CANDIDATES, tune
from tercet.index.candidates import CandidateLimits, Weights
from tercet.index.collection import Collection
from tercet.index.errors import CollectionNotFoundError, FingerprintMismatchError
from tercet.index.languages.sample import LanguageSample
from tercet.ingest.build import build_collection
from tercet.ingest.document_encoders import LocalDocuments
from tercet.models.checkpoint import EncodingSettings
from tercet.models.encoder import AdapterDescription, Encoder, EncoderInfo
from tercet.models.errors import AdapterNotFoundError
from tercet.models.representations import (
    OUTPUTS,
    Output,
    Representations,
    SparseRows,
    TokenBatch,
    TokenVectors,
    offsets_of,
)
from tercet.models.tokenizer import Tokenizer
from tests.conftest import TinyEncoder

WORDS = [
    "bread",
    "moon",
    "violin",
    "tide",
    "train",
    "tea",
    "bee",
    "steam",
    "harbour",
    "glass",
    "wool",
    "salt",
]
CODES = [f"zx{number}" for number in range(len(WORDS))]
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *CODES]


class OneHotEncoder:
    """Dense says which word comes first, token vectors say every word, terms are the codes, of weight 0.8.

    Of "moon zx1" the text "moon" scores 1 + 0 + 2/3 and the text "zx1" scores 0 + 0.64 + 2/3.
    """

    def __init__(self) -> None:
        vocabulary = Vocabulary(
            models.WordLevel({word: i for i, word in enumerate(VOCABULARY)}, unk_token="[UNK]")
        )
        vocabulary.pre_tokenizer = pre_tokenizers.Whitespace()
        vocabulary.add_special_tokens(VOCABULARY[:5])
        vocabulary.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
        )
        settings = EncodingSettings(pooling="mean", max_length=8)
        self._tokenizer = Tokenizer.from_bytes(vocabulary.to_str().encode(), settings)
        size = len(VOCABULARY)
        self._info = EncoderInfo("one-hot", "e" * 64, "numpy", "float32", size, size, size, 8, "mean")

    @property
    def info(self) -> EncoderInfo:
        return self._info

    @property
    def tokenizer(self) -> Tokenizer:
        return self._tokenizer

    @property
    def pass_tokens(self) -> int:
        return 64

    @property
    def pads(self) -> bool:
        return True

    def adapter_info(self, name: str) -> EncoderInfo:
        raise AdapterNotFoundError(name)

    def resolve_adapter(self, name: str, collection: str | None = None) -> str | None:
        return name

    def describe_adapters(self) -> list[AdapterDescription]:
        return []

    def encode_tokens(
        self,
        batch: TokenBatch,
        outputs: Sequence[Output] = OUTPUTS,
        adapters: Sequence[str | None] | None = None,
    ) -> Representations:
        rows = [batch.token_ids[a:b] for a, b in pairwise(batch.offsets.tolist())]
        terms = [np.unique(row[row >= VOCABULARY.index(CODES[0])]).astype(np.int32) for row in rows]
        ones = np.eye(len(VOCABULARY), dtype=np.float32)
        token_ids = np.concatenate(terms)
        return Representations(
            batch.lengths,
            batch.truncated,
            ones[[int(row[1]) for row in rows]],
            SparseRows(
                offsets_of(np.array([len(ids) for ids in terms])),
                token_ids,
                np.full(len(token_ids), 0.8, np.float32),
            ),
            TokenVectors(
                np.concatenate([ones[row[1:]] for row in rows]),
                offsets_of(np.array([len(row) - 1 for row in rows])),
            ),
        ).keep(outputs)


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return OneHotEncoder()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Twelve queries of a word and a code; right is the document with the code, not that with the word."""
    folder = tmp_path / "codes"
    (folder / "qrels").mkdir(parents=True)
    corpus, queries, judgments = [], [], []
    for word, code in zip(WORDS, CODES, strict=True):
        corpus += [{"_id": f"code-{word}", "text": code}, {"_id": f"text-{word}", "text": word}]
        queries.append({"_id": word, "text": f"{word} {code}"})
        judgments.append(f"{word}\tcode-{word}\t1")
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, corpus)))
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)))
    (folder / "qrels" / "test.tsv").write_text("\n".join(judgments))
    return folder


@pytest.fixture
def root(tmp_path: Path, folder: Path, encoder: Encoder) -> Path:
    """A folder of collections with `codes`."""
    build_collection(LocalDocuments(encoder), tmp_path / "collections", "codes", folder)
    return tmp_path / "collections"


def test_what_beats_the_plain_sum_on_held_out_queries_is_stored(
    root: Path, folder: Path, encoder: Encoder
) -> None:
    seen: list[tuple[int, int]] = []
    report = tune(root, "codes", folder, encoder, folds=4, progress=lambda *now: seen.append(now))
    assert (report["collection"], report["snapshot"]) == ("codes", "000001")
    assert (report["queries"], report["missing_documents"], report["unjudged_queries"]) == (12, 0, 0)
    assert [fold["queries"] for fold in report["folds"]] == [3, 3, 3, 3]
    held_out = report["held_out"]
    second = 1 / math.log2(3)  # each right document is second with 1, 1, 1, and first with better weights
    assert (held_out["plain"], held_out["tuned"]) == (pytest.approx(second, abs=1e-6), 1.0)
    assert held_out["gain"] == pytest.approx(1 - second, abs=1e-6)
    assert held_out["gain_standard_error"] == pytest.approx(0, abs=1e-6)
    assert report["fitted"]["tuned"] == 1.0
    assert report["fitted"]["candidates"] == {"dense": CANDIDATES[0], "sparse": CANDIDATES[0]}
    assert report["stored"]
    stored = Collection.open(root, "codes").defaults()
    assert stored is not None
    assert stored.weights == Weights(**report["fitted"]["weights"])
    assert 0.64 * stored.weights.sparse > stored.weights.dense
    assert (stored.candidates.dense, stored.candidates.sparse) == (CANDIDATES[0], CANDIDATES[0])
    assert astuple(stored.tuning) == ("000001", 12, 4, 0, held_out["plain"], held_out["tuned"])
    confidence = report["confidence"]
    assert confidence is not None
    assert (confidence["before"], confidence["stored"]) == (None, True)
    assert stored.confidence is not None
    assert (stored.confidence.queries, stored.confidence.threshold) == (12, confidence["threshold"])
    assert seen == [(done, 12) for done in range(1, 13)]


def test_the_usual_weights_of_the_collection_are_to_be_beaten(
    root: Path, folder: Path, encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LanguageSample, "usual_weights", lambda _: Weights(1, 4, 1))
    report = tune(root, "codes", folder, encoder, folds=4)
    assert report["usual"] == {"dense": 1, "sparse": 4, "colbert": 1}
    assert (report["held_out"]["plain"], report["stored"]) == (1.0, False)  # which are right already


def test_what_gains_nothing_is_not_stored_unless_forced(root: Path, folder: Path, encoder: Encoder) -> None:
    # Where the texts are right as well as the codes, every order of the two is ideal.
    judgments = [f"{word}\t{kind}-{word}\t1" for word in WORDS for kind in ("code", "text")]
    (folder / "qrels" / "dev.tsv").write_text("\n".join(judgments))
    report = tune(root, "codes", folder, encoder, split="dev")
    assert report["held_out"]["gain"] <= 0
    assert not report["stored"]
    stored = Collection.open(root, "codes").defaults()
    assert stored is not None  # how sure searches are, which was not known, beside what is usual
    assert (stored.weights, stored.candidates) == (Weights(), CandidateLimits())
    assert stored.confidence is not None
    assert tune(root, "codes", folder, encoder, split="dev", force=True)["stored"]
    forced = Collection.open(root, "codes").defaults()
    assert forced is not None
    assert forced.candidates != stored.candidates


def test_the_same_seed_gives_the_same_report_and_a_dry_run_stores_nothing(
    root: Path, folder: Path, encoder: Encoder
) -> None:
    first, second = (tune(root, "codes", folder, encoder, seed=7, store=False) for _ in range(2))
    assert {**first, "seconds": 0} == {**second, "seconds": 0}
    assert first["held_out"]["gain"] > 0
    assert not first["stored"]
    assert Collection.open(root, "codes").defaults() is None


def test_missing_documents_are_counted(root: Path, folder: Path, encoder: Encoder) -> None:
    with (folder / "qrels" / "test.tsv").open("a") as file:
        file.write("\nmoon\tnot-here\t1\nbread\tnor-this\t0\n")
    assert tune(root, "codes", folder, encoder, store=False)["missing_documents"] == 1
    judgments = [f"{word}\tother-{word}\t1" for word in WORDS]
    (folder / "qrels" / "test.tsv").write_text("\n".join(judgments))
    with pytest.raises(TuningError, match=r"none of the 12 documents .* is in collection 'codes'"):
        tune(root, "codes", folder, encoder)


@pytest.mark.parametrize(
    ("queries", "folds", "message"),
    [
        (9, 5, "has 9 judged queries; tuning needs at least 10: judge more"),
        (11, 12, "has 11 judged queries for 12 folds; judge more, or use at most 11"),
        (12, 1, "folds is 1; use at least 2"),
    ],
)
def test_too_few_queries_are_refused(
    root: Path, folder: Path, encoder: Encoder, queries: int, folds: int, message: str
) -> None:
    path = folder / "qrels" / "test.tsv"
    path.write_text("\n".join(path.read_text().splitlines()[:queries]))
    with pytest.raises(TuningError, match=message):
        tune(root, "codes", folder, encoder, folds=folds)


def test_a_wrong_collection_split_or_encoder_is_refused(
    root: Path, folder: Path, encoder: Encoder, tmp_path: Path
) -> None:
    with pytest.raises(CollectionNotFoundError):
        tune(root, "none", folder, encoder)
    with pytest.raises(DatasetError, match=r"dev\.tsv: no such file.* is there for test"):
        tune(root, "codes", folder, encoder, split="dev")
    path = root / "codes" / "collection.json"
    record: dict[str, Any] = json.loads(path.read_text())
    other = {**record, "name": "other", "fingerprint": "f" * 64}
    (root / "other").mkdir()
    (root / "other" / "collection.json").write_text(json.dumps(other))
    with pytest.raises(FingerprintMismatchError, match="f" * 64):
        tune(root, "other", folder, encoder)


def test_weights_of_sides_that_there_are_not_stay_0(tmp_path: Path, folder: Path) -> None:
    encoder, root = TinyEncoder(sides=("sparse", "colbert")), tmp_path / "collections"
    build_collection(LocalDocuments(encoder), root, "some", folder)
    report = tune(root, "some", folder, encoder, force=True)
    assert report["stored"]
    assert report["confidence"] is None
    stored = Collection.open(root, "some").defaults()
    assert stored is not None
    assert stored.weights.dense == 0
    assert stored.weights.sparse + stored.weights.colbert > 0
