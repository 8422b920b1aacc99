"""Settings of `tercet train` about what fine-tuning learns: losses, negatives, where heads start."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from tercet.training.settings.table import AtLeast0, AtLeast1, Factor, Positive, Share, Table, require


class DenseLosses(Table):
    """The contrastive loss of the dense side alone, as in the unsupervised stage of BGE-M3.

    anchor_dense, teacher_scores, teacher_temperature: as in `LossSettings`.
    """

    temperature: Positive = 0.02
    teacher_scores: Factor | None = None
    teacher_temperature: Positive = 1.0
    anchor_dense: Factor = 0.0


class LossSettings(DenseLosses):
    """The loss of M3 (Chen et al. 2024, arXiv 2402.03216), in the form of its first or its revised version.

    first: s_inter = s_dense + s_lex + s_mul; L = L_dense + L_lex + L_mul;
    L' = (L'_dense + L'_lex + L'_mul)/3; the total is L + L'. revised: s_inter = s_dense + 0.3·s_lex + s_mul;
    L = (L_dense + 0.1·L_lex + L_mul + L_inter)/4; L' = (L'_dense + 0.1·L'_lex + L'_mul)/3; the total is
    (L + L')/2. Any search weight (`sum_*`) and any factor of a term
    (`dense` … `distill_colbert`) that is given replaces the form's.
    distill = false leaves self-knowledge distillation out; distill_start_step: so does each of the first so
    many steps. distill_temperature: of teacher and students, by default `temperature`; a higher one softens a
    teacher that is nearly one-hot.
    teacher_scores: factor of the distillation from the `pos_scores` and `neg_scores` of training files, for
    each side and the sum beside their own losses (M3, section 3.3; RetroMAE, Liu and Shao 2022,
    arXiv 2205.12035, section 4.1); 0 leaves the scores out, and without it they are refused.
    `teacher_dense` … `teacher_sum` replace the factor of the term beside it, which is that of the side's own
    loss. teacher_temperature: of the scores; the students' is `temperature`.
    anchor_dense, anchor_colbert: factors of terms that hold dense and token vectors near those of the base
    (one minus their cosine; learning without forgetting, Li and Hoiem 2016, arXiv 1606.09282), so that what
    a broadly trained base knows survives narrow data. They cost one more forward pass.
    prior: factor of a term that pulls lexical weights towards those of BM25, times `prior_scale`; see
    `tercet.training.m3.lexical_prior`.
    """

    form: Literal["first", "revised"] = "first"
    distill: bool = True
    distill_start_step: AtLeast0 = 0
    distill_temperature: Positive | None = None
    sum_dense: Factor | None = None
    sum_sparse: Factor | None = None
    sum_colbert: Factor | None = None
    dense: Factor | None = None
    sparse: Factor | None = None
    colbert: Factor | None = None
    sum: Factor | None = None
    distill_dense: Factor | None = None
    distill_sparse: Factor | None = None
    distill_colbert: Factor | None = None
    teacher_dense: Factor | None = None
    teacher_sparse: Factor | None = None
    teacher_colbert: Factor | None = None
    teacher_sum: Factor | None = None
    anchor_colbert: Factor = 0.0
    prior: Factor = 0.0
    prior_scale: Factor = 0.12

    @staticmethod
    def of_dense_alone(given: DenseLosses) -> LossSettings:
        """The losses of a stage that trains the dense side alone."""
        return LossSettings(**given.model_dump(), distill=False, dense=1.0, sparse=0.0, colbert=0.0, sum=0.0)

    def at(self, step: int) -> LossSettings:
        """The losses of a step, counted from 0."""
        return self if step >= self.distill_start_step else self.model_copy(update={"distill": False})

    @property
    def anchored(self) -> bool:
        """Whether the base's own vectors are needed."""
        return self.anchor_dense > 0 or self.anchor_colbert > 0


class TeacherSettings(Table):
    """Another checkpoint, whose plain sum the student's sum learns on sources with `taught = true`.

    It reads each text as its own tokenizer cuts it. temperature: of its scores; factor: of the term.
    """

    checkpoint: str
    temperature: Positive = 0.1
    factor: Positive = 1.0


MinedBy = Literal["sum", "dense", "sparse", "colbert", "bm25"]
"""What ranks the passages that hard negatives are taken from."""


class MiningSettings(Table):
    """Hard negatives from an index of each source's own passages, made with the encoder as trained so far
    (ANCE, Xiong et al. 2020, arXiv 2007.00808).

    draw: `hard`, as follows, or `random`: as many of the passages of other pairs at random, without ranking.
    every_steps: passages are ranked again after so many steps, 0 for once at the start. Each query takes its
    negatives at random from the ranks `first` to `last` of the plain sum, less its positives and whatever
    scores above `ceiling` times the best of these (likely another right answer). So a query whose positives
    score below all of these ranks gets none. by: what ranks. `dense` scores every passage on the device that
    trains; `sum`, `sparse`, `colbert` and `bm25` go through an index, where `colbert` ranks what the dense
    and the lexical side propose. `bm25` counts the encoder's word pieces and encodes nothing (DPR, Karpukhin
    et al. 2020, arXiv 2004.04906). In the contrastive stage all but `bm25` are `dense`.
    """

    draw: Literal["hard", "random"] = "hard"
    by: MinedBy = "sum"
    every_steps: AtLeast0 = 0
    first: AtLeast1 = 2
    last: AtLeast1 = 60
    ceiling: Positive = 0.95

    @model_validator(mode="after")
    def _ranks_ascend(self) -> MiningSettings:
        require(self.first <= self.last, "first and last", (self.first, self.last), "first ≤ last")
        return self


class HeadSettings(Table):
    """Where the heads start if the base has none or `fresh` asks for new ones.

    start: `fitted` to the training passages (`tercet.training.m3.initial_heads`), or at `random`, as a
    control.
    Of fitted heads, a token's first lexical weight is about `idf_scale` times the root of its
    idf in the training passages. ColBERT starts from a random projection to `colbert_dimension` of states
    whitened by the power `whitening` (0 not at all, 0.5 fully); in `distil_steps` steps it learns to rank as
    the states themselves do (`tercet.training.m3.projection`). Texts of about `tokens_each` tokens of each
    source
    are looked at.
    """

    colbert_dimension: AtLeast1 = 128
    fresh: bool = False
    start: Literal["fitted", "random"] = "fitted"
    idf_scale: Positive = 0.15
    ridge_penalty: Positive = 1.0
    whitening: Annotated[float, Field(ge=0, le=1)] = 0.3
    distil_steps: AtLeast0 = 0
    tokens_each: AtLeast1 = 60_000


class HalfwaySettings(Table):
    """What is written lies between the base and what was trained, with heads fitted to its states.

    share: of the way from the base's weights (0) to the trained ones (1); lexical_scale: times the fitted
    lexical weights. See `tercet.training.multilingual.refitting`.
    """

    share: Share = 0.5
    lexical_scale: Positive = 1.0
