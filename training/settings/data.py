"""Settings of `tercet train` about where a run starts, its data and its batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from training.settings.reader import refuse_given, require


@dataclass(frozen=True, slots=True)
class BaseSettings:
    """The checkpoint that training starts from: a folder, a hub id or `minilm-m3` as `checkpoint`, or the
    folder `folder` inside the installed Python package `package`.

    revision: of a hub id. sha256: the digest that `model.safetensors` must have, where given. name and
    licence go into the model card.
    """

    name: str
    licence: str
    checkpoint: str = ""
    revision: str = ""
    package: str = ""
    folder: str = ""
    sha256: str = ""

    def __post_init__(self) -> None:
        given = [bool(self.checkpoint), bool(self.package)]
        require(sum(given) == 1, "checkpoint and package", sum(given), "1 of the two")
        if self.package:
            refuse_given(self, ("revision",), "", "left out with a package")
        else:
            refuse_given(self, ("folder",), "", "left out without a package")


@dataclass(frozen=True, slots=True)
class ArchitectureSettings:
    """A new BERT of random weights in place of the base's body; the base then gives the tokenizer only.

    width: of a hidden state; positions: the longest input in tokens.
    """

    layers: int
    width: int
    attention_heads: int
    intermediate: int
    positions: int = 512
    pooling: Literal["cls", "mean"] = "cls"

    def __post_init__(self) -> None:
        for name in ("layers", "attention_heads", "intermediate"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "at least 1")
        require(self.positions >= 4, "positions", self.positions, "at least 4")
        divides = self.width >= 1 and self.width % self.attention_heads == 0
        require(divides, "width", self.width, f"a multiple of attention_heads, {self.attention_heads}")


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """One file of training data, below the data folder.

    format: `pairs` are JSON lines `{"query", "pos": [...], "neg": [...]?}`. The others are JSON lines
    `{"text", "title"?}`, as in BEIR's corpus, or plain text, a document a line: `titles` makes pairs of title
    and text, `spans` pairs of a span of a text and the rest of it (inverse cloze task, Lee et al. 2019,
    arXiv 1906.00300), and `texts` takes documents for pre-training.
    The first `development_pairs` of the shuffled pairs are held out: ranked against the passages of all of
    them and of `development_passages` more, they choose the checkpoint. With `train = false` the file serves
    the development set only. `most`: at most so many pairs or texts are taken from the shuffled file.
    `join_up_to`: neighbouring passages of the file are joined in groups of 1 to this many.
    `lines`: the first and last line of the file that are taken. `language`: only texts whose `lang`, their
    own or that of their `metadata`, is this.
    `mine`: whether hard negatives are mined for it. `title` and `licence` go into the model card.
    """

    path: str
    title: str
    licence: str
    format: Literal["pairs", "titles", "spans", "texts"] = "pairs"
    train: bool = True
    development_pairs: int = 0
    development_passages: int = 0
    most: int | None = None
    join_up_to: int = 1
    lines: tuple[int, ...] = ()
    language: str | None = None
    mine: bool = True

    def __post_init__(self) -> None:
        for name in ("development_pairs", "development_passages"):
            require(getattr(self, name) >= 0, name, getattr(self, name), "at least 0")
        require(self.join_up_to >= 1, "join_up_to", self.join_up_to, "at least 1")
        require(self.most is None or self.most >= 1, "most", self.most, "at least 1")
        ordered = len(self.lines) == 2 and 1 <= self.lines[0] <= self.lines[1]
        require(not self.lines or ordered, "lines", self.lines, "two numbers, 1 ≤ first ≤ last")


@dataclass(frozen=True, slots=True)
class DataSettings:
    """Sources, and the lengths in tokens at which training texts are cut.

    A pair is left out where one of its passages occurs inside a document of a `held_out` BEIR folder, and so
    is a document that does.
    """

    sources: tuple[SourceSettings, ...]
    query_tokens: int = 64
    passage_tokens: int = 256
    held_out: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        training = sum(source.train for source in self.sources)
        require(training >= 1, "sources with train = true", training, "at least 1")
        titles = [source.title for source in self.sources if source.development_pairs]
        alike = sorted({title for title in titles if titles.count(title) > 1})
        require(not alike, "titles of sources with development_pairs", alike, "different from each other")
        for name in ("query_tokens", "passage_tokens"):
            require(getattr(self, name) >= 4, name, getattr(self, name), "at least 4")


@dataclass(frozen=True, slots=True)
class LengthGroup:
    """Pairs whose longest positive has at most `tokens` tokens, and no shorter group takes, come `batch` a
    step on each device.
    """

    tokens: int
    batch: int

    def __post_init__(self) -> None:
        require(self.tokens >= 1, "tokens", self.tokens, "at least 1")
        require(self.batch >= 2, "batch", self.batch, "at least 2: negatives are in-batch")


@dataclass(frozen=True, slots=True)
class BatchSettings:
    """How pairs come into batches, each of one source and one length group.

    negatives: passages beside the positive that every query brings, where it has or mined as many.
    sub_batch_tokens: padded tokens of one pass of the body. gradient_cache: representations of the whole
    batch are computed without a graph, and each sub-batch again with one, so that memory holds one sub-batch;
    by default where a step has more than `sub_batch_tokens` and the body trains; one more forward pass is the
    price.
    gradient_checkpointing: the body keeps only its layers' inputs and computes the rest again.
    neighbours: so many consecutive pairs of the file come into a batch together.
    """

    groups: tuple[LengthGroup, ...] = (LengthGroup(tokens=100_000, batch=32),)
    negatives: int = 7
    sub_batch_tokens: int = 8192
    gradient_cache: bool | None = None
    gradient_checkpointing: bool = False
    neighbours: int = 1

    def __post_init__(self) -> None:
        require(len(self.groups) >= 1, "groups", len(self.groups), "at least one")
        tokens = [group.tokens for group in self.groups]
        require(tokens == sorted(set(tokens)), "groups", tokens, "in order of their tokens")
        require(self.negatives >= 0, "negatives", self.negatives, "at least 0")
        require(self.sub_batch_tokens >= 1, "sub_batch_tokens", self.sub_batch_tokens, "at least 1")
        require(self.neighbours >= 1, "neighbours", self.neighbours, "at least 1")
