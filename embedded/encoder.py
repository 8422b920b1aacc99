"""An encoder for programs: texts to the three representations, and scores of pairs of texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tercet.embedded.failures import translated
from tercet.index.candidates import Weights
from tercet.index.fusion import weighted_sum, weights_preset
from tercet.models.checkpoint import DEFAULT_CHECKPOINT
from tercet.models.encoder import Encoder as LoadedEncoder
from tercet.models.encoder import EncoderInfo, Engine, encode, with_adapter
from tercet.models.loader import load_encoder
from tercet.models.representations import (
    OUTPUTS,
    Bool,
    Float32,
    Float64,
    InputType,
    Int32,
    Int64,
    Output,
    Representations,
)
from tercet.models.texts.blank import without_blank
from tercet.service.search.query_terms import require_meaning
from tercet.service.search.scoring import score_texts
from tercet.service.settings.reading import load_settings

PAIRS = 256  # scored at a time, so that many pairs take no more memory than some


@dataclass(frozen=True, slots=True)
class SparseVector:
    """Lexical weights of one text. token_ids: int32[n], ascending; weights: float32[n], above 0."""

    token_ids: Int32
    weights: Float32


@dataclass(frozen=True, slots=True)
class Encoded:
    """Representations of B texts, in order. What was not asked for, or the encoder lacks, is None.

    dense: float32[B, D], unit length; sparse: B lexical vectors; colbert: B arrays float32[L, C] of token
    vectors; tokens: int64[B], tokens read of each text; truncated: bool[B], true where a text was cut.
    """

    dense: Float32 | None
    sparse: tuple[SparseVector, ...] | None
    colbert: tuple[Float32, ...] | None
    tokens: Int64
    truncated: Bool

    def __len__(self) -> int:
        return len(self.tokens)


@dataclass(frozen=True, slots=True)
class PairScore:
    """How well a text answers a query: the weighted sum, and its parts before weighting.

    A part is None where the encoder lacks that side.
    """

    score: float
    dense: float | None
    sparse: float | None
    colbert: float | None


class Encoder:
    """A loaded encoder. Safe to call from several threads."""

    def __init__(self, loaded: LoadedEncoder) -> None:
        self._loaded = loaded

    @property
    def info(self) -> EncoderInfo:
        """What identifies the encoder, and its sizes."""
        return self._loaded.info

    @property
    def loaded(self) -> LoadedEncoder:
        """The encoder as the layers below take it."""
        return self._loaded

    def encode(
        self,
        texts: Sequence[str],
        input_type: InputType = "document",
        outputs: Sequence[Output] = OUTPUTS,
        max_length: int | None = None,
    ) -> Encoded:
        """Representations of texts, in order.

        input_type: `query` or `document`, which some encoders treat differently. outputs: those wanted of
        `dense`, `sparse` and `colbert`. max_length: tokens of a text; longer ones are cut. By default as many
        as the encoder takes.

        Raises TypeError for one text in the place of a list, and ValueError for an unknown output.
        """
        _require_list(texts, "texts")
        unknown = set(outputs) - set(OUTPUTS)
        if unknown or not outputs:
            raise ValueError(f"outputs are {tuple(outputs)!r}; choose among {', '.join(OUTPUTS)}")
        with translated():
            return _encoded(encode(self._loaded, list(texts), input_type, outputs, max_length=max_length))

    def score(
        self, pairs: Sequence[tuple[str, str]], weights: str | Mapping[str, float] = "sum"
    ) -> list[PairScore]:
        """The exact three-way score of each (query, text), as `POST /rerank` gives it.

        weights: a preset's name, or numbers for `dense`, `sparse` and `colbert`.
        Raises ApiError for a blank query and for an unknown preset.
        """
        _require_list(pairs, "pairs")
        with translated():
            chosen = weights_preset(weights) if isinstance(weights, str) else Weights(**weights)
            chosen = chosen.of(self.info.sides)
            parts = [self._scores(pairs[at : at + PAIRS]) for at in range(0, len(pairs), PAIRS)]
            if not parts:
                return []
            scores = np.concatenate(parts)
            sums = weighted_sum(scores, chosen)
        lacking = {side: None for side in OUTPUTS if side not in self.info.sides}
        return [
            PairScore(score, **{**dict(zip(OUTPUTS, row, strict=True)), **lacking})
            for score, row in zip(sums.tolist(), scores.tolist(), strict=True)
        ]

    def _scores(self, pairs: Sequence[tuple[str, str]]) -> Float64:
        """Scores of some pairs, float64[P, 3]; each query is encoded once."""
        queries = list(dict.fromkeys(query for query, _ in pairs))
        for query in queries:
            require_meaning(self._loaded.tokenizer, query, "query")
        texts = [text for _, text in pairs]
        as_queries = encode(self._loaded, queries, "query")
        documents = without_blank(self._loaded.tokenizer, texts, encode(self._loaded, texts))
        scores = np.zeros((len(pairs), len(OUTPUTS)))
        query_rows = np.array([queries.index(query) for query, _ in pairs])
        for number in range(len(queries)):
            rows = np.flatnonzero(query_rows == number)
            scores[rows] = score_texts(as_queries.take(np.array([number])), documents.take(rows))
        return scores


def load(
    name: str = DEFAULT_CHECKPOINT,
    *,
    engine: Engine = "onnx",
    device: str = "auto",
    adapter: str | Path | None = None,
    threads: int | None = None,
) -> Encoder:
    """Loads an encoder: `multi-m3` or `minilm-m3`, which come with Tercet, a folder, or a hub id.

    engine: `onnx` for an exported graph, `torch` for the weights. device: auto, cpu or cuda. adapter: the
    folder of an adapter or router to encode with. threads: CPU threads of one pass, by default all cores.
    Raises TercetError where it cannot be loaded, and NotFoundError where the adapter does not exist.
    """
    folder = None if adapter is None else Path(adapter)
    with translated():
        loaded = load_encoder(
            name,
            engine,
            device=device,
            threads=threads,
            adapters=None if folder is None else folder.parent,
            export_cache=load_settings().export_cache_folder,
        )
        return Encoder(with_adapter(loaded, None if folder is None else folder.name))


def _require_list(values: Sequence[object], name: str) -> None:
    if isinstance(values, str):
        raise TypeError(f"{name} is one text; give a list, as [{values[:20]!r}]")


def _encoded(representations: Representations) -> Encoded:
    sparse, colbert = representations.sparse, representations.colbert
    return Encoded(
        representations.dense,
        None if sparse is None else tuple(SparseVector(*sparse.row(row)) for row in range(len(sparse))),
        None if colbert is None else tuple(colbert.row(row) for row in range(len(colbert))),
        representations.tokens,
        representations.truncated,
    )
