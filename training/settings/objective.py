"""Settings of `tercet train` about what is learned: losses, negatives, heads, pre-training, adapters."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Literal, get_args

from models.adapters.settings import (
    AdapterSettings,
    BottleneckSettings,
    Ia3Settings,
    LoraSettings,
    PrefixSettings,
)
from training.settings.reader import refuse_given, require

AdapterKind = Literal["lora", "ia3", "prefix", "bottleneck"]


@dataclass(frozen=True, slots=True)
class LossSettings:
    """The loss of M3 (Chen et al. 2024, arXiv 2402.03216), in the form of its first or its revised version.

    first: s_inter = s_dense + s_lex + s_mul; L = L_dense + L_lex + L_mul;
    L' = (L'_dense + L'_lex + L'_mul)/3; the total is L + L'. revised: s_inter = s_dense + 0.3·s_lex + s_mul;
    L = (L_dense + 0.1·L_lex + L_mul + L_inter)/4; L' = (L'_dense + 0.1·L'_lex + L'_mul)/3; the total is
    (L + L')/2. Any weight that is given replaces the form's: of a side in the sum (`sum_*`), and the factor
    of a term in the total (`dense` … `distill_colbert`).
    distill = false leaves self-knowledge distillation out.
    anchor_dense, anchor_colbert: factors of terms that hold dense and token vectors near those of the base
    (one minus their cosine; learning without forgetting, Li and Hoiem 2016, arXiv 1606.09282), so that what
    a broadly trained base knows survives narrow data. They cost one more forward pass.
    prior: factor of a term that pulls lexical weights towards those of BM25, times `prior_scale`; see
    `training.m3.lexical_prior`.
    """

    form: Literal["first", "revised"] = "first"
    temperature: float = 0.02
    distill: bool = True
    sum_dense: float | None = None
    sum_sparse: float | None = None
    sum_colbert: float | None = None
    dense: float | None = None
    sparse: float | None = None
    colbert: float | None = None
    sum: float | None = None
    distill_dense: float | None = None
    distill_sparse: float | None = None
    distill_colbert: float | None = None
    anchor_dense: float = 0.0
    anchor_colbert: float = 0.0
    prior: float = 0.0
    prior_scale: float = 0.12

    @property
    def of_dense_alone(self) -> LossSettings:
        """The contrastive loss of the dense side alone, as in the unsupervised stage."""
        return replace(self, distill=False, dense=1.0, sparse=0.0, colbert=0.0, sum=0.0)

    @property
    def anchored(self) -> bool:
        """Whether the base's own vectors are needed."""
        return self.anchor_dense > 0 or self.anchor_colbert > 0

    def __post_init__(self) -> None:
        require(self.temperature > 0, "temperature", self.temperature, "above 0")
        for setting in fields(self):
            value = getattr(self, setting.name)
            if isinstance(value, float):
                require(value >= 0, setting.name, value, "at least 0")


@dataclass(frozen=True, slots=True)
class MiningSettings:
    """Hard negatives from an index of each source's own passages, made with the encoder as trained so far
    (ANCE, Xiong et al. 2020, arXiv 2007.00808).

    every_steps: the index is made again after so many steps, 0 for once at the start. Each query takes its
    negatives at random from the ranks `first` to `last` of the plain sum, less its positives and, where one
    of these is among the ranks, whatever scores above `ceiling` times the best of them (likely another right
    answer).
    """

    every_steps: int = 0
    first: int = 2
    last: int = 60
    ceiling: float = 0.95

    def __post_init__(self) -> None:
        require(self.every_steps >= 0, "every_steps", self.every_steps, "at least 0")
        require(1 <= self.first <= self.last, "first and last", (self.first, self.last), "1 ≤ first ≤ last")
        require(self.ceiling > 0, "ceiling", self.ceiling, "above 0")


@dataclass(frozen=True, slots=True)
class HeadSettings:
    """Where the heads start if the base has none or `fresh` asks for new ones.

    See `training.m3.initial_heads`. A token's first lexical weight is about `idf_scale` times the root of its
    idf in the training passages. ColBERT starts from a random projection to `colbert_dimension` of states
    whitened by the power `whitening` (0 not at all, 0.5 fully). Texts of about `tokens_each` tokens of each
    source are looked at.
    """

    colbert_dimension: int = 128
    fresh: bool = False
    idf_scale: float = 0.15
    ridge_penalty: float = 1.0
    whitening: float = 0.3
    tokens_each: int = 60_000

    def __post_init__(self) -> None:
        require(self.colbert_dimension >= 1, "colbert_dimension", self.colbert_dimension, "at least 1")
        require(self.idf_scale > 0, "idf_scale", self.idf_scale, "above 0")
        require(0 <= self.whitening <= 1, "whitening", self.whitening, "from 0 to 1")
        require(self.ridge_penalty > 0, "ridge_penalty", self.ridge_penalty, "above 0")
        require(self.tokens_each >= 1, "tokens_each", self.tokens_each, "at least 1")


@dataclass(frozen=True, slots=True)
class PretrainingSettings:
    """What RetroMAE, Condenser and coCondenser hide and predict; see the modules of these names.

    decoding, encoder_ratio, decoder_ratio: of RetroMAE. ratio, early_layers (half of the body's by default)
    and head_layers: of Condenser. span_tokens, span_weight: of coCondenser's contrast of two spans, with
    span_temperature, and normalized where normalize_spans.
    """

    decoding: Literal["basic", "enhanced"] = "enhanced"
    encoder_ratio: float = 0.3
    decoder_ratio: float = 0.5
    ratio: float = 0.15
    early_layers: int | None = None
    head_layers: int = 2
    span_tokens: int = 128
    span_weight: float = 1.0
    span_temperature: float = 1.0
    normalize_spans: bool = False

    def __post_init__(self) -> None:
        for name in ("encoder_ratio", "decoder_ratio", "ratio"):
            require(0 < getattr(self, name) < 1, name, getattr(self, name), "above 0 and below 1")
        require(self.head_layers >= 1, "head_layers", self.head_layers, "at least 1")
        require(self.span_tokens >= 3, "span_tokens", self.span_tokens, "at least 3")
        require(self.span_weight >= 0, "span_weight", self.span_weight, "at least 0")
        require(self.span_temperature > 0, "span_temperature", self.span_temperature, "above 0")


@dataclass(frozen=True, slots=True)
class AdapterTraining:
    """An adapter trained on a frozen body, in place of the body; `models.adapters.settings` has its kinds.

    Of the kinds' tables only that of the chosen one may be given. heads: whether the heads train with it,
    and are saved with it. below: folders of trained adapters of the same base that lie under it, the
    innermost first. description, language and domain are saved with it.
    """

    kind: AdapterKind
    heads: bool = True
    below: tuple[str, ...] = ()
    description: str = ""
    language: str | None = None
    domain: str | None = None
    lora: LoraSettings = field(default_factory=LoraSettings)
    ia3: Ia3Settings = field(default_factory=Ia3Settings)
    prefix: PrefixSettings = field(default_factory=PrefixSettings)
    bottleneck: BottleneckSettings = field(default_factory=BottleneckSettings)

    def __post_init__(self) -> None:
        others = [kind for kind in get_args(AdapterKind) if kind != self.kind]
        refuse_given(self, others, "", f"left out for an adapter of kind {self.kind}")

    @property
    def chosen(self) -> AdapterSettings:
        """The settings of the kind."""
        settings: AdapterSettings = getattr(self, self.kind)
        return settings
