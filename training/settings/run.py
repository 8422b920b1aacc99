"""Settings of a whole run of `tercet train`, read from TOML or JSON by `training.settings.reader`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from training.settings.data import (
    ArchitectureSettings,
    BaseSettings,
    BatchSettings,
    DataSettings,
    SourceSettings,
)
from training.settings.objective import (
    AdapterTraining,
    HeadSettings,
    LossSettings,
    MiningSettings,
    PretrainingSettings,
)
from training.settings.reader import refuse_given, require
from training.settings.unread import UNREAD, UNREAD_OF_SOURCES

Stage = Literal["finetune", "contrastive", "retromae", "condenser", "cocondenser"]
Precision = Literal["float32", "bfloat16", "float16"]
MOST_SEEDS = 2**32


@dataclass(frozen=True, slots=True)
class OptimizationSettings:
    """AdamW with a linear warm-up over `warmup` of the steps, then a linear or cosine decay to zero.

    Either `steps` or `epochs` is given. learning_rate is the body's, heads_learning_rate that of the heads
    (by default the same). head_warmup_steps: only the heads train for so many steps at first.
    frozen_body: the body never trains. dropout: of the body, by default what its configuration says.
    clip: largest norm of the gradient, 0 for none.
    """

    learning_rate: float
    steps: int | None = None
    epochs: int | None = None
    heads_learning_rate: float | None = None
    head_warmup_steps: int = 0
    frozen_body: bool = False
    dropout: float | None = None
    weight_decay: float = 0.01
    warmup: float = 0.1
    decay: Literal["linear", "cosine", "none"] = "linear"
    clip: float = 1.0
    precision: Precision = "float32"

    def __post_init__(self) -> None:
        given = (self.steps is not None) + (self.epochs is not None)
        require(given == 1, "steps and epochs", given, "1 of the two")
        length = self.steps if self.steps is not None else self.epochs
        require(length is not None and length >= 1, "steps or epochs", length, "at least 1")
        require(self.learning_rate > 0, "learning_rate", self.learning_rate, "above 0")
        heads = self.heads_learning_rate
        require(heads is None or heads > 0, "heads_learning_rate", heads, "above 0")
        require(self.head_warmup_steps >= 0, "head_warmup_steps", self.head_warmup_steps, "at least 0")
        require(self.weight_decay >= 0, "weight_decay", self.weight_decay, "at least 0")
        require(0 <= self.warmup < 1, "warmup", self.warmup, "from 0 to below 1")
        require(self.clip >= 0, "clip", self.clip, "at least 0")
        if self.dropout is not None:
            require(0 <= self.dropout < 1, "dropout", self.dropout, "from 0 to below 1")


@dataclass(frozen=True, slots=True)
class EncodingOverrides:
    """What the written `tercet.json` says about encoding where it is not what the base says."""

    pooling: Literal["cls", "mean"] | None = None
    max_length: int | None = None
    query_instruction: str | None = None
    document_instruction: str | None = None
    mcls_every: int | None = None


@dataclass(frozen=True, slots=True)
class RunSettings:
    """A whole run of `tercet train`.

    evaluate_steps, save_steps: the development set is ranked, and the state of training saved, every so many
    steps; both also happen at the end.
    """

    name: str
    stage: Stage
    base: BaseSettings
    data: DataSettings
    optimization: OptimizationSettings
    seed: int = 1
    architecture: ArchitectureSettings | None = None
    encoder: EncodingOverrides = field(default_factory=EncodingOverrides)
    heads: HeadSettings = field(default_factory=HeadSettings)
    batches: BatchSettings = field(default_factory=BatchSettings)
    losses: LossSettings = field(default_factory=LossSettings)
    mining: MiningSettings | None = None
    pretraining: PretrainingSettings = field(default_factory=PretrainingSettings)
    adapter: AdapterTraining | None = None
    evaluate_steps: int = 500
    save_steps: int = 500

    @property
    def reads_pairs(self) -> bool:
        """Whether the stage trains on pairs; the others train on documents."""
        return self.stage in ("finetune", "contrastive")

    @property
    def objective(self) -> LossSettings:
        """The losses of fine-tuning; in stage contrastive that of the dense side alone."""
        return self.losses.of_dense_alone if self.stage == "contrastive" else self.losses

    def __post_init__(self) -> None:
        rule = "letters, digits, underscores, dots and hyphens, the first neither a dot nor a hyphen"
        require(re.fullmatch(r"\w[\w.-]*", self.name) is not None, "name", self.name, rule)
        require(0 <= self.seed < MOST_SEEDS, "seed", self.seed, f"from 0 to below {MOST_SEEDS}")
        for name in ("evaluate_steps", "save_steps"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "at least 1")
        longest, cut = self.batches.groups[-1].tokens, self.data.passage_tokens
        require(longest >= cut, "batches.groups[-1].tokens", longest, f"at least data.passage_tokens, {cut}")
        frozen = self.optimization.frozen_body
        require(
            not frozen or self.stage == "finetune",
            "optimization.frozen_body",
            frozen,
            "false but in stage finetune",
        )
        if self.adapter is not None:
            self._check_adapter()
        for number, source in enumerate(self.data.sources):
            self._check_source(source, f"data.sources[{number}]")
        refuse_given(self, UNREAD[self.stage], "", f"left out in stage {self.stage}")
        trains_heads = self.stage == "finetune" and (self.adapter is None or self.adapter.heads)
        warmup = self.optimization.head_warmup_steps
        rule = "0 where no heads are trained"
        require(trains_heads or warmup == 0, "optimization.head_warmup_steps", warmup, rule)

    def _check_source(self, source: SourceSettings, where: str) -> None:
        """Pairs go with fine-tuning, documents with pre-training."""
        fits = (source.format != "texts") == self.reads_pairs
        made = "one that makes pairs" if self.reads_pairs else "texts"
        require(fits, f"{where}.format", source.format, f"{made} in stage {self.stage}")
        rule = f"left out with format {source.format!r}"
        refuse_given(source, UNREAD_OF_SOURCES[source.format], f"{where}.", rule)

    def _check_adapter(self) -> None:
        """An adapter goes with its base as it is."""
        require(self.reads_pairs, "adapter", self.stage, "used in stage finetune or contrastive")
        changed = [
            name
            for name, differs in (
                ("architecture", self.architecture is not None),
                ("encoder", self.encoder != EncodingOverrides()),
                ("heads.fresh", self.heads.fresh),
                ("optimization.frozen_body", self.optimization.frozen_body),
            )
            if differs
        ]
        require(not changed, "adapter", ", ".join(changed), "used without these settings")
