"""The encoders of the table in docs/checkpoints.md: bodies by their family, the others by their layout."""

from __future__ import annotations

import string
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.tiny.families import FAMILIES
from tests.tiny.family import write
from tests.tiny.late_folders import (
    POOLINGS,
    TANH,
    Layer,
    write_multi_vector,
    write_pooled,
    write_pylate,
    write_stanford,
)
from tests.tiny.sparse_folders import write_inference_free, write_model2vec, write_splade, write_static
from tests.tiny.word_pieces import WORDS

# All marks that have no vectors are in these vocabularies, as in real ones: PyLate and ColBERT take a mark
# that is not there for the unknown token.
MARKS = [mark for mark in ",.!?" if mark in WORDS]
OTHER_MARKS = [mark for mark in string.punctuation if mark not in WORDS]
EXPANSION = {"strategy": "fixed", "attend": False, "token": None, "length": 12}


@dataclass(frozen=True)
class Layout:
    """One row of the table. peer: the name of the library that its folders are made for, as that of its
    lock file in benchmarks/peers.
    """

    name: str
    sides: tuple[str, ...]
    write: Callable[[Path], Path]
    peer: str = "sentence_transformers"

    @property
    def key(self) -> str:
        """Its name in the names of files."""
        return self.name.lower().replace(" ", "-").replace("'", "")


LAYOUTS = (
    *(Layout(family.name, family.sides, partial(write, family)) for family in FAMILIES),
    Layout(
        "Dense after pooling",
        ("dense",),
        partial(write_pooled, layers=(Layer(16, bias=True, activation=TANH),), pooling=POOLINGS[0]),
    ),
    Layout("SPLADE", ("sparse",), write_splade),
    Layout("inference-free sparse", ("sparse",), write_inference_free),
    Layout("PyLate", ("colbert",), partial(write_pylate, skiplist_words=MARKS), "pylate"),
    Layout(
        "GTE-ModernColBERT",
        ("colbert",),
        partial(write_pylate, kind="modernbert", skiplist_words=MARKS),
        "pylate",
    ),
    Layout(
        "MultiVectorEncoder",
        ("colbert",),
        partial(write_multi_vector, expansion=EXPANSION, document_length=24),
    ),
    Layout("Stanford's ColBERT", ("colbert",), partial(write_stanford, added=OTHER_MARKS), "colbert"),
    Layout("Model2Vec", ("dense",), write_model2vec, "model2vec"),
    Layout("StaticEmbedding", ("dense",), write_static),
)
