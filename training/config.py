"""Settings of `tercet train`, read from TOML or JSON by `training.settings_reader`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from models.adapters.settings import (
    AdapterSettings,
    BottleneckSettings,
    Ia3Settings,
    LoraSettings,
    PrefixSettings,
)
from training.settings_reader import require

Stage = Literal["finetune", "contrastive", "retromae", "condenser", "cocondenser"]
Precision = Literal["float32", "bfloat16", "float16"]


@dataclass(frozen=True, slots=True)
class BaseSettings:
    """The checkpoint that training starts from: a folder, a hub id or `minilm-m3` as `checkpoint`, or the
    folder `folder` inside the installed Python package `package`.

    sha256: the digest that `model.safetensors` must have, where given. name and licence go into the model
    card.
    """

    name: str
    licence: str
    checkpoint: str = ""
    package: str = ""
    folder: str = ""
    sha256: str = ""

    def __post_init__(self) -> None:
        given = [bool(self.checkpoint), bool(self.package)]
        require(sum(given) == 1, "checkpoint and package", sum(given), "1 of the two")


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

    A pair is left out where one of its positives occurs inside a document of a `held_out` BEIR folder, and so
    is a document for pre-training that does.
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
    by default where a step has more than `sub_batch_tokens`, for which one more forward pass is the price.
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
    `training.lexical_prior`.
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
    def anchored(self) -> bool:
        """Whether the base's own vectors are needed."""
        return self.anchor_dense > 0 or self.anchor_colbert > 0

    def __post_init__(self) -> None:
        for name in ("anchor_dense", "anchor_colbert", "prior", "prior_scale"):
            require(getattr(self, name) >= 0, name, getattr(self, name), "at least 0")
        require(self.temperature > 0, "temperature", self.temperature, "above 0")


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
class HeadSettings:
    """Where the heads start if the base has none or `fresh` asks for new ones: see `training.initial_heads`.

    A token's first lexical weight is about `idf_scale` times the root of its idf in the training passages.
    ColBERT starts from a random projection to `colbert_dimension` of states whitened by the power `whitening`
    (0 not at all, 0.5 fully). Texts of about `tokens_each` tokens of each source are looked at.
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

    Only the table of the chosen kind counts. heads: whether the heads train with it, and are saved with it.
    below: folders of trained adapters of the same base that lie under it, the innermost first.
    description, language and domain are saved with it.
    """

    kind: Literal["lora", "ia3", "prefix", "bottleneck"]
    heads: bool = True
    below: tuple[str, ...] = ()
    description: str = ""
    language: str | None = None
    domain: str | None = None
    lora: LoraSettings = field(default_factory=LoraSettings)
    ia3: Ia3Settings = field(default_factory=Ia3Settings)
    prefix: PrefixSettings = field(default_factory=PrefixSettings)
    bottleneck: BottleneckSettings = field(default_factory=BottleneckSettings)

    @property
    def chosen(self) -> AdapterSettings:
        """The settings of the kind."""
        settings: AdapterSettings = getattr(self, self.kind)
        return settings


@dataclass(frozen=True, slots=True)
class EncodingOverrides:
    """What the written `tercet.json` says about encoding where it is not what the base says."""

    pooling: Literal["cls", "mean"] | None = None
    max_length: int | None = None
    query_instruction: str | None = None
    document_instruction: str | None = None


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

    def __post_init__(self) -> None:
        require(self.seed >= 0, "seed", self.seed, "at least 0")
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
        pairs = self.stage in ("finetune", "contrastive")
        if self.adapter is not None:
            self._check_adapter(pairs)
        for number, source in enumerate(self.data.sources):
            self._check_source(source, f"data.sources[{number}]", pairs)
        trains_heads = self.stage == "finetune" and (self.adapter is None or self.adapter.heads)
        warmup = self.optimization.head_warmup_steps
        rule = "0 where no heads are trained"
        require(trains_heads or warmup == 0, "optimization.head_warmup_steps", warmup, rule)

    def _check_source(self, source: SourceSettings, where: str, pairs: bool) -> None:
        """Pairs go with fine-tuning, documents with pre-training, which holds nothing out."""
        fits = (source.format != "texts") == pairs
        made = "one that makes pairs" if pairs else "texts"
        require(fits, f"{where}.format", source.format, f"{made} in stage {self.stage}")
        if not pairs:
            for name, only in (("train", True), ("development_pairs", 0), ("join_up_to", 1)):
                value = getattr(source, name)
                require(value == only, f"{where}.{name}", value, f"{only!r} in stage {self.stage}")

    def _check_adapter(self, pairs: bool) -> None:
        """An adapter goes with its base as it is."""
        require(pairs, "adapter", self.stage, "used in stage finetune or contrastive")
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
