"""Settings of a training run, read from TOML or JSON. Every key is checked; an unknown one fails."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from training.data_config import BaseSettings
from training.errors import ConfigError
from training.settings_reader import require, settings_from

Settings = TypeVar("Settings")


@dataclass(frozen=True, slots=True)
class EncoderSettings:
    """What the written `tercet.json` says about the encoder. `max_length` in tokens."""

    pooling: str
    colbert_dimension: int
    max_length: int
    query_instruction: str = ""
    document_instruction: str = ""


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """One file of training pairs, below the data folder given on the command line.

    The first `development_pairs` of the shuffled file are held out: their queries, against their passages,
    choose the epoch. With `train = false` the file serves the development set only.
    `join_up_to`: neighbouring passages are joined in groups of 1 to this many. Several numbers stand for
    as many fits, whose heads are averaged; in a fit beyond a source's last number that one holds.
    `neighbours`: so many consecutive pairs of the file come into a batch together. Where they are of one
    document, its other passages are the hardest negatives that a batch can have.
    `title` and `licence` go into the model card.
    """

    path: str
    title: str
    licence: str
    development_pairs: int
    train: bool = True
    join_up_to: tuple[int, ...] = (1,)
    neighbours: int = 1

    def __post_init__(self) -> None:
        least = 0 if self.train else 1
        count = self.development_pairs
        require(count >= least, "development_pairs", count, f"at least {least}")
        require(len(self.join_up_to) >= 1, "join_up_to", len(self.join_up_to), "at least one number")
        require(min(self.join_up_to) >= 1, "join_up_to", min(self.join_up_to), "at least 1")
        require(self.neighbours >= 1, "neighbours", self.neighbours, "at least 1")


@dataclass(frozen=True, slots=True)
class DataSettings:
    """Sources, and the lengths in tokens at which training texts are cut.

    A training pair is left out where its passage occurs inside a document of a `held_out` BEIR folder.
    """

    sources: tuple[SourceSettings, ...]
    query_tokens: int
    passage_tokens: int
    held_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class InitialSettings:
    """Where the heads start: see `training.frozen.initial_heads`.

    A token's first lexical weight is about `idf_scale` times its idf in the training passages. ColBERT starts
    from a random projection of states whitened by the power `whitening` (0 not at all, 0.5 fully).
    `tokens_each` random tokens of each source are looked at.
    """

    idf_scale: float
    ridge_penalty: float
    whitening: float
    tokens_each: int


@dataclass(frozen=True, slots=True)
class LossSettings:
    """Temperature, and the weight of each term of the loss; the total is divided by no weight sum.

    `sparse`, `colbert` and `sum` weigh the contrastive losses, `distill_*` the losses whose teacher is the
    plain sum. The dense side has no term: with the body frozen it has nothing to learn.
    """

    temperature: float
    sparse: float
    colbert: float
    sum: float
    distill_sparse: float
    distill_colbert: float

    def __post_init__(self) -> None:
        require(self.temperature > 0, "temperature", self.temperature, "above 0")
        for name in ("sparse", "colbert", "sum", "distill_sparse", "distill_colbert"):
            weight = getattr(self, name)
            require(weight >= 0, name, weight, "at least 0")


@dataclass(frozen=True, slots=True)
class OptimizationSettings:
    """AdamW with a linear warm-up over `warmup` of the steps and a linear decay to zero.

    The heads kept are those of the epoch with the best development figure.
    """

    epochs: int
    batch_pairs: int
    learning_rate: float
    weight_decay: float
    warmup: float

    def __post_init__(self) -> None:
        require(self.epochs >= 1, "epochs", self.epochs, "at least 1")
        require(self.batch_pairs >= 2, "batch_pairs", self.batch_pairs, "at least 2: negatives are in-batch")
        require(self.learning_rate > 0, "learning_rate", self.learning_rate, "above 0")
        require(self.weight_decay >= 0, "weight_decay", self.weight_decay, "at least 0")
        require(0 <= self.warmup < 1, "warmup", self.warmup, "from 0 to below 1")


@dataclass(frozen=True, slots=True)
class FitSettings:
    """A whole run of `training.frozen.fit_heads`."""

    name: str
    seed: int
    base: BaseSettings
    encoder: EncoderSettings
    data: DataSettings
    initial: InitialSettings
    losses: LossSettings
    optimization: OptimizationSettings

    def __post_init__(self) -> None:
        held_out = sum(source.development_pairs for source in self.data.sources)
        require(held_out > 0, "development_pairs of all sources", held_out, "at least 1, to choose the epoch")

    @property
    def fits(self) -> int:
        """How many fits the heads are averaged from."""
        return max((len(source.join_up_to) for source in self.data.sources), default=1)


def load_settings(path: Path) -> FitSettings:
    """Settings from a `.toml` or `.json` file. Raises ConfigError naming the key."""
    try:
        content = path.read_text(encoding="utf-8")
        values = json.loads(content) if path.suffix == ".json" else tomllib.loads(content)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: cannot be read as {path.suffix or 'TOML'}: {error}") from error
    return settings_from(FitSettings, values, "")
