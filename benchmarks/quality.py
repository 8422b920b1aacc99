"""How well does a checkpoint rank, side by side and in sums, and what do int8 and the index cost?

Each collection is built once, with BM25 and without windows, and measured over every document: each side, the
lexical one without and with the collection's idf, the sums, the sums with BM25, and two baselines over whole
texts: BM25 of words (stems, or pairs of characters) and of the encoder's word pieces. Some are also measured
through HNSW and the inverted index with default candidates, in windows, where most documents are longer than
the encoder reads, and with float32 (torch engine), where the trained checkpoint is at hand as it was before
quantization, or the int8 graph's own weights as `benchmarks/turned_back.py` writes them. Bars are for the
checkpoints that come with the project. A collection's result is written as soon as it is there, beside those
of the same checkpoint that were measured before.

Run: python -m benchmarks.quality [--sets GROUP] [--checkpoint FOLDER] [FOLDER ...]
     (groups: english, multilingual, crosslingual, pooled; other folders are in BEIR's layout)
     python -m benchmarks.quality --float32 trained/minilm-m3
     python -m benchmarks.quality --table      prints what was measured
"""

import argparse
import statistics
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from benchmarks.mixed_sets import PARTS as MIXED_SETS
from benchmarks.mixed_sets import make_mixed_set
from benchmarks.recording import DATA, ROOT, dated, earlier, write
from tercet.evaluation.beir import read_dataset
from tercet.evaluation.dataset import Dataset
from tercet.evaluation.metrics import measure
from tercet.evaluation.rankings import DEPTH, ranking
from tercet.evaluation.results import Rankings
from tercet.evaluation.run import DEFAULT_CODEC, WordPieces, evaluate
from tercet.index.bm25.languages import DEFAULT_LANGUAGE, Bm25Language
from tercet.index.candidates import Weights
from tercet.index.catalog.manifest import Manifest
from tercet.index.collection import Collection
from tercet.index.languages.weights import usual_weights
from tercet.index.segments.segment import Segment
from tercet.index.snapshot import Snapshot
from tercet.index.windows.settings import WindowChoice, WindowSettings
from tercet.ingest.build import build_collection
from tercet.ingest.document_encoders import LocalDocuments
from tercet.models.checkpoint import SHIPPED
from tercet.models.encoder import Encoder, encode
from tercet.models.loader import load_encoder
from tercet.models.representations import LexicalKind

CHECKPOINT, MULTILINGUAL = (ROOT / "checkpoints" / name for name in SHIPPED)

MEASURE = "nDCG@10"
EVERY, INDEXED, FLOAT32 = "every document", "through the index", "float32, every document"
WINDOWED = "in windows, every document"
WORDS, PIECES = "bm25 of words", "bm25 of word pieces"
# What is ranked: the lexical weights with or without idf, and the weights of the sum.
VARIANTS: dict[str, tuple[LexicalKind, Weights]] = {
    "dense": ("idf", Weights(1, 0, 0)),
    "sparse, plain": ("plain", Weights(0, 1, 0)),
    "sparse, idf": ("idf", Weights(0, 1, 0)),
    "colbert": ("idf", Weights(0, 0, 1)),
    "sum, plain": ("plain", Weights()),
    "sum, idf": ("idf", Weights()),
    "sum, plain, bm25": ("plain", Weights(bm25=1)),
    "sum, idf, bm25": ("idf", Weights(bm25=1)),
    WORDS: ("idf", Weights(0, 0, 0, 1)),
}
SIDES = ("dense", "sparse, idf", "colbert")
SUM, SUM_WITH_BM25 = "sum, idf", "sum, idf, bm25"
# Stemmed BM25 (k1 1.2, b 0.75, a stop list) on each set, as the collections' own documentation gives it.
SUM_BARS = {
    "cranfield": 0.424,
    "cacm": 0.477,
    "lisa": 0.464,
    "time": 0.682,
    "npl": 0.434,
    "xquad-en": 0.966,
    "scifact": 0.686,
    "squadshifts-new-wiki": 0.874,
}
# Languages of sets that are not in English, or in no language that has stems.
LANGUAGES: dict[str, Bm25Language] = {
    "xquad-de": "german",
    "xquad-el": "greek",
    "xquad-es": "spanish",
    "xquad-hi": "hindi",
    "xquad-ro": "romanian",
    "xquad-ru": "russian",
    "xquad-tr": "turkish",
    "xquad-vi": "none",
    "arcd": "arabic",
}
XQUAD = tuple(name for name in LANGUAGES if name.startswith("xquad-"))
SETS = {
    "english": tuple(SUM_BARS),
    "multilingual": (
        *("korquad1-dev", "msmarco-ko", "welfare-ko", "jaquad-dev", "cmrc2018-dev", "xquad-zh"),
        *XQUAD,
    ),
    # Queries in another language than the English documents.
    "crosslingual": ("msmarco-ko-to-en", *(f"{name}-to-en" for name in ("xquad-zh", *XQUAD))),
    # Queries and documents in several languages, whose own is not preferred.
    "pooled": ("xquad-pool10", *MIXED_SETS),
}
THROUGH_THE_INDEX = ("cranfield", "cacm", "xquad-en")
IN_WINDOWS = {"time": WindowSettings(tokens=256, overlap=64)}
WINDOW_BARS = {"time": 0.695}
SIDE_MARGIN = 0.005  # the sum may be this much below its best side
INT8_LOSS = 0.003  # of the sum, against float32
INDEX_SHARE = 0.995  # of the exhaustive sum
# Means over the sets of a group, as advised, by checkpoint.
MEANS: dict[Path, dict[str, dict[str, float]]] = {
    CHECKPOINT: {"english": {SUM: 0.660, SUM_WITH_BM25: 0.668}},
    MULTILINGUAL: {
        "english": {SUM: 0.657, SUM_WITH_BM25: 0.671},
        "multilingual": {SUM: 0.965, "dense": 0.90},
        "crosslingual": {SUM: 0.90},
    },
}
CROSSLINGUAL_BARS = {"msmarco-ko-to-en": 0.70}  # of the sum
MIXED_BARS = {"xquad-pool10": {SUM: 0.76, SUM_WITH_BM25: 0.70}}
ENGLISH_MARGIN = 0.005  # the multilingual checkpoint may be this much below the English one on an English set
Figures = TypeVar("Figures")  # of one way of ranking, whatever holds them


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, help="BEIR folders")
    parser.add_argument("--sets", choices=SETS, default="english")
    parser.add_argument("--checkpoint", type=lambda path: Path(path).resolve(), default=CHECKPOINT)
    parser.add_argument("--float32", type=Path, help="a checkpoint for torch, trained or turned back")
    parser.add_argument("--table", action="store_true", help="print what was measured, and measure nothing")
    asked = parser.parse_args()
    result = result_name(asked.checkpoint)
    int8 = load_encoder(str(asked.checkpoint), precision="int8")
    float32 = None if asked.float32 is None else load_encoder(str(asked.float32), "torch", device="cpu")
    folders = [] if asked.table else asked.folders or [DATA / name for name in SETS[asked.sets]]
    for folder in folders:
        with tempfile.TemporaryDirectory(prefix="tercet-mixed-") as made:
            mixed = folder.name in MIXED_SETS
            given = make_mixed_set(folder.name, DATA, Path(made)) if mixed else folder
            entry = measured(given, int8, float32)
        # Others may have been measured meanwhile.
        keep(result, int8, {**stored(result, int8.info.fingerprint), folder.name: entry})
    sets = stored(result, int8.info.fingerprint)
    failed = [
        f"{name}: {bar}" for name, entry in sets.items() for bar, holds in entry["bars"].items() if not holds
    ]
    for group, names in SETS.items():
        print_table(group, {name: sets[name] for name in names if name in sets})
    for group, bars in MEANS.get(asked.checkpoint, {}).items():
        if all(name in sets for name in SETS[group]):
            means = means_of({name: as_advised(sets[name]["results"]) for name in SETS[group]})
            failed += missed_means(group, means, bars)
    assert not failed, "\n".join(failed)


def result_name(checkpoint: Path) -> str:
    """The name of the result that keeps the figures of a checkpoint."""
    return "quality" if checkpoint == CHECKPOINT else f"quality-{checkpoint.name}"


def stored(result: str, fingerprint: str) -> dict[str, Any]:
    """What was measured of this very checkpoint, by collection: entries that have every variant."""
    record = earlier(result)
    if record.get("fingerprint") != fingerprint:
        return {}
    return {
        name: entry
        for name, entry in record["sets"].items()
        if entry["results"].get(EVERY, {}).keys() >= {*VARIANTS, PIECES}
    }


def keep(result: str, encoder: Encoder, sets: dict[str, Any]) -> None:
    """Replaces the file of figures."""
    record = {
        "checkpoint": encoder.info.name,
        "fingerprint": encoder.info.fingerprint,
        "sets": sets,
    }
    write(result, dated(record))


def measured(folder: Path, int8: Encoder, float32: Encoder | None) -> dict[str, Any]:
    """Figures of one collection, printed and checked against the bars."""
    dataset, language = read_dataset(folder), LANGUAGES.get(folder.name, DEFAULT_LANGUAGE)
    results = {EVERY: every_document(folder, dataset, int8, language)}
    if folder.name in IN_WINDOWS:
        results[WINDOWED] = every_document(folder, dataset, int8, language, IN_WINDOWS[folder.name])
    if folder.name in THROUGH_THE_INDEX:
        [indexed] = evaluate(
            [dataset], int8, exhaustive=False, dense_kind="hnsw", lexical="idf", window=False
        )
        results[INDEXED] = indexed["results"]
    if float32 is not None:
        [unrounded] = evaluate([dataset], float32, exhaustive=True, lexical="idf", window=False)
        results[FLOAT32] = unrounded["results"]
    figures = {way: {name: means[MEASURE] for name, means in found.items()} for way, found in results.items()}
    documents = sum(1 for _ in dataset.corpus)
    print(f"\n{dataset.name}: {documents} documents, {len(dataset.queries)} queries; {MEASURE}")
    for way, found in figures.items():
        print(f"  {way:24} {'  '.join(f'{name} {value:.4f}' for name, value in found.items())}", flush=True)
    bars = checked(int8.info.name, dataset.name, figures)
    for bar, holds in bars.items():
        print(f"  {'holds' if holds else 'FAILS'}: {bar}", flush=True)
    return {
        "documents": documents,
        "queries": len(dataset.queries),
        "bm25_language": language,
        "results": results,
        "bars": bars,
    }


def every_document(
    folder: Path,
    dataset: Dataset,
    encoder: Encoder,
    language: Bm25Language,
    window: WindowChoice = False,
) -> dict[str, dict[str, float]]:
    """Means of each variant over every document, from one build: idf and BM25 need nothing encoded again."""
    with tempfile.TemporaryDirectory(prefix="tercet-quality-") as scratch:
        root = Path(scratch)
        build_collection(
            LocalDocuments(encoder),
            root,
            "set",
            folder,
            lexical="idf",
            bm25=True,
            bm25_language=language,
            window=window,
            token_codec=DEFAULT_CODEC,
        )
        snapshots = {kind: opened(Collection.open(root, "set"), kind) for kind in ("plain", "idf")}
        variants = usual(snapshots["idf"].languages().same_language())
        queries = encode(encoder, list(dataset.queries.values()), "query")
        rankings: Rankings = {}
        for row, (query_id, text) in enumerate(dataset.queries.items()):
            query = queries.take(np.array([row], np.int64))
            ids, idf_scores = snapshots["idf"].score_all(query, text)
            plain_scores = idf_scores.copy()
            plain_scores[:, 1] = snapshots["plain"].score_all(query.keep(("sparse",)))[1][:, 1]
            scores = {"idf": idf_scores, "plain": plain_scores}
            for name, (lexical, weights) in variants.items():
                rankings.setdefault(name, {})[query_id] = ranking(ids, scores[lexical], weights)
    rankings[PIECES] = WordPieces(dataset.corpus, encoder).rankings(dataset.queries, DEPTH)
    return {name: measure(dataset.qrels, found) for name, found in rankings.items()}


def usual(same_language: float) -> dict[str, tuple[LexicalKind, Weights]]:
    """VARIANTS, whose sums have the weights that searches have in a collection of one or more languages."""
    return {
        name: (lexical, usual_weights(same_language, weights.bm25) if name.startswith("sum") else weights)
        for name, (lexical, weights) in VARIANTS.items()
    }


def opened(collection: Collection, lexical: LexicalKind) -> Snapshot:
    """The current snapshot of a collection with idf, as if its lexical weights were of this kind."""
    settings, layout = replace(collection.settings, lexical=lexical), collection.layout
    manifest = Manifest.read(layout.manifest(collection.current() or ""))
    segments = [Segment.open(layout, entry, settings) for entry in manifest.segments]
    return Snapshot(manifest.name, settings, segments)


def checked(checkpoint: str, dataset: str, figures: dict[str, dict[str, float]]) -> dict[str, bool]:
    """Each bar of a checkpoint in words, and whether it holds."""
    every = figures[EVERY]
    if checkpoint == MULTILINGUAL.name:
        return multilingual_bars(dataset, figures)
    if checkpoint != CHECKPOINT.name:
        return {}
    advised = as_advised(figures)
    best = max(advised[side] for side in SIDES)
    bars = {}
    if dataset in SUM_BARS:
        bars[f"the sum is within {SIDE_MARGIN} of its best side, or above"] = (
            advised[SUM] >= best - SIDE_MARGIN
        )
        bars[f"the sum reaches stemmed BM25, {SUM_BARS[dataset]}"] = advised[SUM] >= SUM_BARS[dataset]
    if WINDOWED in figures:
        bar = WINDOW_BARS[dataset]
        bars[f"the sum reaches {bar} in windows"] = advised[SUM] >= bar
    if INDEXED in figures:
        bars[f"the index keeps {INDEX_SHARE} of the sum"] = (
            figures[INDEXED]["sum"] >= INDEX_SHARE * every[SUM]
        )
    if FLOAT32 in figures:
        bars[f"int8 loses at most {INT8_LOSS}"] = figures[FLOAT32]["sum"] - every[SUM] <= INT8_LOSS
    return bars


def multilingual_bars(dataset: str, figures: dict[str, dict[str, float]]) -> dict[str, bool]:
    """Those of the multilingual checkpoint: BM25 and each side in a language, the English one in English."""
    every, advised, bars = figures[EVERY], as_advised(figures), dict[str, bool]()
    if dataset in SETS["multilingual"]:
        best = max(every[side] for side in SIDES)
        bars["the sum reaches BM25 of words"] = every[SUM] >= every[WORDS]
        bars[f"the sum is within {SIDE_MARGIN} of its best side, or above"] = every[SUM] >= best - SIDE_MARGIN
    if dataset in CROSSLINGUAL_BARS:
        bar = CROSSLINGUAL_BARS[dataset]
        bars[f"the sum reaches {bar}"] = every[SUM] >= bar
    for name, bar in MIXED_BARS.get(dataset, {}).items():
        bars[f"{name} reaches {bar}"] = every[name] >= bar
    if dataset in SUM_BARS:
        english = earlier(result_name(CHECKPOINT))["sets"][dataset]["results"]
        for name in (SUM, SUM_WITH_BM25):
            bar = as_advised(english)[name][MEASURE] - ENGLISH_MARGIN
            bars[f"{name} is within {ENGLISH_MARGIN} of {CHECKPOINT.name}'s, or above"] = advised[name] >= bar
    if FLOAT32 in figures:
        bars[f"int8 loses at most {INT8_LOSS}"] = figures[FLOAT32]["sum"] - every[SUM] <= INT8_LOSS
    return bars


def as_advised(results: dict[str, Figures]) -> Figures:
    """Figures with the settings that suit a set: in windows where most documents are longer than is read."""
    return results.get(WINDOWED, results[EVERY])


def means_of(results: dict[str, dict[str, dict[str, float]]]) -> dict[str, float]:
    """The mean of each variant over sets."""
    return {
        name: statistics.mean(found[name][MEASURE] for found in results.values())
        for name in (*VARIANTS, PIECES)
    }


def missed_means(group: str, means: dict[str, float], bars: dict[str, float]) -> list[str]:
    """The bars on means over the sets of a group that do not hold."""
    missed = [
        f"{group}, mean of {name}: {means[name]:.4f}, the bar is {bar}"
        for name, bar in bars.items()
        if means[name] < bar
    ]
    if group == "english" and means["sparse, idf"] < means[PIECES]:
        missed.append(f"the lexical side {means['sparse, idf']:.4f} is below {PIECES} {means[PIECES]:.4f}")
    return missed


def print_table(group: str, sets: dict[str, Any]) -> None:
    """A line for each variant, a column for each set, and their mean."""
    if not sets:
        return
    print(f"\n{group} sets, {MEASURE}, every document")
    print(" " * 20, *(f"{name[:12]:>12}" for name in sets), f"{'mean':>12}")
    for variant in (*VARIANTS, PIECES):
        figures = [entry["results"][EVERY][variant][MEASURE] for entry in sets.values()]
        print(
            f"{variant:20}",
            *(f"{figure:12.4f}" for figure in figures),
            f"{statistics.mean(figures):12.4f}",
            flush=True,
        )
    if any(WINDOWED in entry["results"] for entry in sets.values()):
        means = means_of({name: as_advised(entry["results"]) for name, entry in sets.items()})
        print(f"mean with {' and '.join(IN_WINDOWS)} in windows:", {n: round(m, 4) for n, m in means.items()})


if __name__ == "__main__":
    main()
