"""What is measured of each suite, and with which weights: its preset, which flags override.

Weights are those of M3-Embedding's evaluation (J. Chen et al., arXiv 2402.03216, sections 4.1 to 4.3). It
gives none for MS MARCO, NQ and BEIR.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from tercet.evaluation.dataset import Dataset
from tercet.evaluation.suites.beir import read_beir
from tercet.evaluation.suites.long_documents import read_long_documents
from tercet.evaluation.suites.miracl import read_miracl
from tercet.evaluation.suites.mkqa import read_mkqa
from tercet.evaluation.suites.msmarco import read_msmarco
from tercet.evaluation.suites.names import SuiteName

DEPTH = 1000
SHORT_TEXTS = ("sum=1,0.3,1", "dense+sparse=1,0.3,0")
LONG_TEXTS = ("sum=0.15,0.5,0.35", "dense+sparse=0.2,0.8,0")


@dataclass(frozen=True, slots=True)
class Suite:
    """A benchmark. read: the data sets of a folder, of the split that publishers report or of another one;
    weights: of rankings, as `tercet eval --weights` takes them. depth: documents kept of each query.
    """

    read: Callable[[Path, str | None], list[Dataset]]
    measures: tuple[str, ...]
    weights: tuple[str, ...] = ()
    depth: int = DEPTH


SUITES: Mapping[SuiteName, Suite] = MappingProxyType(
    {
        "miracl": Suite(read_miracl, ("nDCG@10", "R@100"), SHORT_TEXTS),
        "mkqa": Suite(read_mkqa, ("Success@20", "Success@100"), SHORT_TEXTS),
        "mldr": Suite(read_long_documents, ("nDCG@10", "R@100"), LONG_TEXTS),
        "narrativeqa": Suite(read_long_documents, ("nDCG@10", "R@100"), LONG_TEXTS),
        "msmarco": Suite(read_msmarco, ("RR@10", "nDCG@10", "R@1000")),
        "nq": Suite(read_beir, ("nDCG@10", "R@100")),
        "beir": Suite(read_beir, ("nDCG@10", "R@100")),
    }
)
