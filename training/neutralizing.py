"""A checkpoint whose vectors do not tell languages apart, from one whose vectors do.

The directions in which the mean vectors of languages differ go out of dense and token vectors, see
`tercet.models.weights.neutral_heads`. A projection is linear: token vectors have it in the matrix of their
head, dense vectors in a layer after the pooling, so encoding takes no longer.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from tercet.models.checkpoint import hidden_size
from tercet.models.encoder import Encoder, encode
from tercet.models.errors import CheckpointError
from tercet.models.export_onnx import export
from tercet.models.graphs.record import FOLDER, packed_graph
from tercet.models.heads import checkpoint_heads
from tercet.models.representations import Float32
from tercet.models.weights.head_weights import HEAD_FILES, write_heads
from tercet.models.weights.neutral_heads import language_directions, neutral_heads
from tercet.models.weights.static_files import is_static
from tercet.training.data.documents import read_texts
from tercet.training.errors import ConfigError, TrainingDataError
from tercet.training.runs.model_card import CARD_FILE

RECORD_FILE = "neutralized.json"
ENDINGS = (".txt", ".jsonl", ".txt.gz", ".jsonl.gz")
# A mean of fewer says more of what the texts are about than of their language.
LEAST_TEXTS = 20
# Where it is not said: on held-out help texts in 15 languages more directions than these helped no more.
USUAL_DIRECTIONS = 14
CARD = """
## Languages

`tercet neutralize` took directions in which the mean vectors of {count} languages differ out of its vectors:
{dense} out of dense vectors, {tokens} out of token vectors (LIR, Yang et al. 2021, arXiv 2109.04727). Lexical
weights are those from before. The languages: {languages}.
"""

Texts = Mapping[str, Sequence[str]]
"""Texts by language."""


@dataclass(frozen=True, slots=True)
class Neutralization:
    """What was done to a checkpoint. source: fingerprint of the encoder that it was done to; texts: how many
    of each language; dense, colbert: directions taken out, 0 of a side that is not there.
    """

    source: str
    texts: dict[str, int]
    dense: int
    colbert: int


def texts_by_language(folder: Path) -> dict[str, list[str]]:
    """Texts of a folder with a file for each language: `de.txt`, a text a line, or `de.jsonl`.

    Raises TrainingDataError for a folder without two languages, and for one of too few texts.
    """
    files = sorted(path for path in folder.glob("*") if path.name.endswith(ENDINGS))
    texts: dict[str, list[str]] = {}
    for path in files:
        found = dict.fromkeys(f"{read.title} {read.text}".strip() for read in read_texts(path))
        texts.setdefault(path.name.partition(".")[0], []).extend(filter(None, found))
    if len(texts) < 2:
        raise TrainingDataError(
            f"{folder} has texts in {'one language' if texts else 'no language'}; give two at least, each "
            "in a file that is named for it, such as de.txt or de.jsonl"
        )
    for language, own in texts.items():
        if len(own) < LEAST_TEXTS:
            raise TrainingDataError(
                f"{folder}: {language} has {len(own)} texts; give {LEAST_TEXTS} at least, better 100"
            )
    return texts


def neutralize(
    checkpoint: Path, encoder: Encoder, texts: Texts, output: Path, directions: int | None = None
) -> Neutralization:
    """Writes a checkpoint without the directions in which languages differ, and says what was done.

    encoder: of the checkpoint; directions: how many of each side, by default USUAL_DIRECTIONS, or as many as
    there are. Raises CheckpointError where the checkpoint has no vectors or no heads, or the output exists,
    and ConfigError for more directions than there are. The output is there once it is whole.
    """
    if output.exists():
        raise CheckpointError(f"{output} exists; name a new folder")
    if is_static(checkpoint):
        raise CheckpointError(f"{checkpoint} holds static embeddings, which have no head for a projection")
    info = encoder.info
    sizes = [size for size in (info.dense_dimension, info.colbert_dimension) if size]
    if not sizes:
        raise CheckpointError(
            f"{checkpoint} has neither dense nor token vectors; there is nothing to project"
        )
    count = _count(directions, len(texts), min(sizes))
    means = [_means(encoder, own) for own in texts.values()]
    dense, tokens = (
        None if side[0] is None else language_directions(np.stack(side), count)
        for side in zip(*means, strict=True)
    )
    heads = neutral_heads(checkpoint_heads(checkpoint, hidden_size(checkpoint)), dense, tokens)
    done = Neutralization(
        info.fingerprint,
        {language: len(own) for language, own in texts.items()},
        *(0 if side is None else len(side) for side in (dense, tokens)),
    )
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{output.name}-", dir=output.parent) as work:
        whole = Path(work) / output.name
        packed = packed_graph(checkpoint) is not None
        left_out = HEAD_FILES if packed else (*HEAD_FILES, FOLDER)
        shutil.copytree(checkpoint, whole, ignore=shutil.ignore_patterns(*left_out))
        write_heads(whole, heads)
        if packed:  # its weights are in the graph, which has the heads built in
            source = whole.rename(whole.with_name("source"))
            export(source, whole, int8=True)
        _write_record(whole, done)
        whole.rename(output)
    return done


def _count(directions: int | None, languages: int, size: int) -> int:
    """How many directions, held against what so many languages and values of a vector have."""
    most = min(languages, size) - 1
    if directions is None:
        return min(USUAL_DIRECTIONS, most)
    if not 1 <= directions <= most:
        raise ConfigError(
            f"directions is {directions}; {languages} languages and vectors of {size} values have 1 to {most}"
        )
    return directions


def _means(encoder: Encoder, texts: Sequence[str]) -> tuple[Float32 | None, Float32 | None]:
    """The mean dense vector and the mean token vector of texts, None for a side that is not there."""
    encoded = encode(encoder, texts, "document", encoder.info.given(("dense", "colbert")))
    return (
        None if encoded.dense is None else encoded.dense.mean(axis=0),
        None if encoded.colbert is None else encoded.colbert.vectors.mean(axis=0, dtype=np.float32),
    )


def _write_record(folder: Path, done: Neutralization) -> None:
    """Says in the model card and in RECORD_FILE what was done."""
    card = folder / CARD_FILE
    former = card.read_text(encoding="utf-8") if card.is_file() else f"# {folder.name}\n"
    section = CARD.format(
        dense=done.dense, tokens=done.colbert, count=len(done.texts), languages=", ".join(done.texts)
    )
    card.write_text(former + section, encoding="utf-8")
    text = json.dumps(asdict(done), indent=2, ensure_ascii=False)
    (folder / RECORD_FILE).write_text(text + "\n", encoding="utf-8")
