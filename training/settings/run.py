"""Settings of a whole run of `tercet train`: a table for each stage, told apart by `stage`."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field, model_validator

from tercet.training.settings.adapter import AdapterTraining
from tercet.training.settings.base import ArchitectureSettings, BaseSettings, EncodingOverrides
from tercet.training.settings.data import (
    BatchSettings,
    DataSettings,
    PairBatches,
    PairData,
    QueryBatches,
    ScoreData,
    TextData,
)
from tercet.training.settings.objective import (
    DenseLosses,
    HalfwaySettings,
    HeadSettings,
    LossSettings,
    MiningSettings,
    TeacherSettings,
)
from tercet.training.settings.optimization import (
    FinetuneOptimization,
    HeadsOptimization,
    OptimizationSettings,
)
from tercet.training.settings.pretraining import (
    CoCondenserSettings,
    CondenserSettings,
    MlmSettings,
    RetroMaeSettings,
)
from tercet.training.settings.table import AtLeast1, Positive, Table, require

Stage = Literal["finetune", "contrastive", "score", "mlm", "retromae", "condenser", "cocondenser"]
NAME_RULE = "letters, digits, underscores, dots and hyphens, the first neither a dot nor a hyphen"


class Run(Table):
    """What a run of any stage has.

    evaluate_steps, save_steps: the development set is ranked, and the state of training saved, every so many
    steps; both also happen at the end. save_minutes: the state is saved, too, after the first step that ends
    so many minutes after the save before. log_steps: as often losses are read and logged.
    """

    name: str
    stage: Stage
    base: BaseSettings
    data: DataSettings
    batches: BatchSettings = BatchSettings()
    optimization: OptimizationSettings
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 1
    architecture: ArchitectureSettings | None = None
    encoder: EncodingOverrides = EncodingOverrides()
    evaluate_steps: AtLeast1 = 500
    save_steps: AtLeast1 = 500
    save_minutes: Positive = 10.0
    log_steps: AtLeast1 | None = None

    @model_validator(mode="after")
    def _is_a_folder_and_batches_every_text(self) -> Run:
        require(re.fullmatch(r"\w[\w.-]*", self.name) is not None, "name", self.name, NAME_RULE)
        longest, cut = self.batches.groups[-1].tokens, self.data.passage_tokens
        require(longest >= cut, "batches.groups[-1].tokens", longest, f"at least data.passage_tokens, {cut}")
        fresh, positions = self.architecture is not None, self.encoder.positions
        rule = "left out with [architecture], which has its own"
        require(not fresh or positions is None, "encoder.positions", positions, rule)
        return self


class PairRun(Run):
    """A stage that trains on pairs, the whole encoder or an adapter."""

    data: PairData
    batches: PairBatches = PairBatches()
    losses: DenseLosses = DenseLosses()
    mining: MiningSettings | None = None
    adapter: AdapterTraining | None = None

    @model_validator(mode="after")
    def _an_adapter_goes_with_its_base_as_it_is(self) -> PairRun:
        if self.adapter is not None:
            changed = ", ".join(self._changes_to_the_base())
            require(not changed, "adapter", changed, "used without these settings")
            every = 0 if self.mining is None or self.adapter.kind != "sparse" else self.mining.every_steps
            later = f"at least adapter.mask_batches, {self.adapter.mask_batches}, or 0"
            require(not 0 < every < self.adapter.mask_batches, "mining.every_steps", every, later)
            # A layer that is computed again in the backward pass would not know its texts' modules any more.
            kept = self.adapter.routing is None or not self.batches.gradient_checkpointing
            require(kept, "batches.gradient_checkpointing", True, "false with adapter.routing")
        return self

    @model_validator(mode="after")
    def _a_hypernetwork_has_tags(self) -> PairRun:
        wanted = self.adapter is not None and self.adapter.kind == "hypernetwork"
        rule = "given for each source of a hypernetwork" if wanted else "left out without a hypernetwork"
        for number, source in enumerate(self.data.sources):
            given = source.tags is not None
            words = "given" if given else "left out"
            require(given == wanted, f"data.sources[{number}].tags", words, rule)
        return self

    @model_validator(mode="after")
    def _repeats_differ(self) -> PairRun:
        repeats = any(source.format == "repeats" for source in self.data.sources)
        dropout = self.optimization.dropout if repeats else None
        require(dropout != 0, "optimization.dropout", dropout, "above 0 for a source of format 'repeats'")
        return self

    @model_validator(mode="after")
    def _scores_are_of_negatives_too(self) -> PairRun:
        negatives = self.batches.negatives
        compares = negatives > 0 or not self.losses.teacher_scores
        require(compares, "batches.negatives", negatives, "at least 1 with losses.teacher_scores")
        return self

    @property
    def body_is_frozen(self) -> bool:
        """Whether the body never trains."""
        return False

    @property
    def teaching(self) -> TeacherSettings | None:
        """The teacher, in a stage that may have one."""
        return None

    def _changes_to_the_base(self) -> list[str]:
        """Keys by which the base would not stay as it is."""
        changed = {
            "architecture": self.architecture is not None,
            "encoder": self.encoder != EncodingOverrides(),
            "optimization.last_layers": self.optimization.last_layers is not None,
        }
        return [key for key, changes in changed.items() if changes]


class FinetuneRun(PairRun):
    """Body and heads."""

    stage: Literal["finetune"]
    optimization: FinetuneOptimization
    heads: HeadSettings = HeadSettings()
    losses: LossSettings = LossSettings()
    teacher: TeacherSettings | None = None
    halfway: HalfwaySettings | None = None

    @model_validator(mode="after")
    def _halfway_from_a_base_of_the_same_shape(self) -> FinetuneRun:
        if self.halfway is not None:
            reshaped = {
                "adapter": self.adapter is not None,
                "architecture": self.architecture is not None,
                "encoder.positions": self.encoder.positions is not None,
            }
            named = ", ".join(key for key, given in reshaped.items() if given)
            require(not named, "halfway", named, "used without these settings")
            steps = self.heads.distil_steps
            require(steps > 0, "heads.distil_steps", steps, "at least 1 with halfway")
        return self

    @model_validator(mode="after")
    def _a_teacher_has_sources(self) -> FinetuneRun:
        taught = sum(source.taught for source in self.data.sources)
        require(
            (taught > 0) == (self.teacher is not None),
            "sources with taught = true",
            taught,
            "there with a teacher, and only then",
        )
        return self

    @property
    def objective(self) -> LossSettings:
        """The losses."""
        return self.losses

    @property
    def teaching(self) -> TeacherSettings | None:
        """As the settings say."""
        return self.teacher

    @property
    def body_is_frozen(self) -> bool:
        """As the settings say."""
        return self.optimization.frozen_body

    @model_validator(mode="after")
    def _heads_that_warm_up_train(self) -> FinetuneRun:
        trains = self.adapter is None or self.adapter.heads
        steps = self.optimization.head_warmup_steps
        require(trains or steps == 0, "optimization.head_warmup_steps", steps, "0 where no heads are trained")
        return self

    def _changes_to_the_base(self) -> list[str]:
        changed = {
            "heads.fresh": self.heads.fresh,
            "optimization.frozen_body": self.optimization.frozen_body,
        }
        return super()._changes_to_the_base() + [key for key, changes in changed.items() if changes]


class ContrastiveRun(PairRun):
    """The body, by the dense side alone."""

    stage: Literal["contrastive"]

    @property
    def objective(self) -> LossSettings:
        """The losses, in the terms of fine-tuning."""
        return LossSettings.of_dense_alone(self.losses)


class ScoreRun(Run):
    """A cross-encoder, which reads query and passage together and scores training files."""

    stage: Literal["score"]
    data: ScoreData
    batches: QueryBatches = QueryBatches()

    @model_validator(mode="after")
    def _the_base_gives_body_and_tokenizer(self) -> ScoreRun:
        given = self.architecture is not None or self.encoder != EncodingOverrides()
        require(not given, "architecture and encoder", "given", "left out in stage score")
        negatives = self.batches.negatives
        require(negatives > 0, "batches.negatives", negatives, "at least 1 in stage score")
        return self


class PretrainingRun(Run):
    """A stage that trains the body on documents."""

    data: TextData
    optimization: HeadsOptimization


class MlmRun(PretrainingRun):
    """Masked language modelling alone."""

    stage: Literal["mlm"]
    pretraining: MlmSettings = MlmSettings()


class RetroMaeRun(PretrainingRun):
    """RetroMAE."""

    stage: Literal["retromae"]
    pretraining: RetroMaeSettings = RetroMaeSettings()


class CondenserRun(PretrainingRun):
    """Condenser."""

    stage: Literal["condenser"]
    pretraining: CondenserSettings = CondenserSettings()


class CoCondenserRun(PretrainingRun):
    """Condenser with the contrast of two spans."""

    stage: Literal["cocondenser"]
    pretraining: CoCondenserSettings = CoCondenserSettings()


PairSettings = FinetuneRun | ContrastiveRun
PretrainingSettings = MlmRun | RetroMaeRun | CondenserRun | CoCondenserRun
RunSettings = Annotated[PairSettings | ScoreRun | PretrainingSettings, Field(discriminator="stage")]
