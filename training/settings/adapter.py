"""Settings of `tercet train` about an adapter; `tercet.models.adapters.settings` has its kinds and their
limits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from tercet.models.adapters.compound_settings import UnipeltSettings
from tercet.models.adapters.kinds import KINDS, AdapterSettings, settings_of
from tercet.models.adapters.settings import (
    BiasSettings,
    BottleneckSettings,
    Ia3Settings,
    LoraSettings,
    MixAndMatchSettings,
    Nonlinearity,
    PrefixSettings,
    PromptSettings,
    SparseSettings,
)
from tercet.models.errors import CheckpointError
from tercet.training.settings.table import AtLeast1, Factor, Many, Table, require

AdapterKind = Literal[
    "lora",
    "ia3",
    "bias",
    "sparse",
    "prefix",
    "prompt",
    "bottleneck",
    "mix_and_match",
    "unipelt",
    "hypernetwork",
    "fusion",
]


def _as_on_disk(kind: AdapterKind) -> BeforeValidator:
    """Reads the table of a kind by the rules of `adapter.json`."""

    def read(values: object) -> object:
        if not isinstance(values, Mapping):
            return values
        try:
            return settings_of(kind, values)
        except CheckpointError as error:
            raise PydanticCustomError("adapter", "{reason}", {"reason": str(error)}) from error

    return BeforeValidator(read)


class RoutingSettings(Table):
    """Several adapters that learn together with the router that chooses among them.

    top: how many each text goes through. balance: factor of the loss that has all of them used alike.
    """

    modules: Annotated[int, Field(ge=2)]
    top: AtLeast1 = 1
    balance: Factor = 0.01

    @model_validator(mode="after")
    def _chooses_among_them(self) -> RoutingSettings:
        require(self.top <= self.modules, "top", self.top, f"at most modules, {self.modules}")
        return self


class FusionTraining(Table):
    """Attention over adapters trained before. modules: folders or hub ids of bottlenecks of one placement and
    base.
    """

    modules: Annotated[Many[str], Field(min_length=2)]


class HypernetworkTraining(Table):
    """Bottlenecks of every language and task that the sources' `tags` name.

    size: numbers in the vector of each; width, nonlinearity: of the bottlenecks.
    """

    size: AtLeast1 = 8
    width: AtLeast1 = 24
    nonlinearity: Nonlinearity = "relu"


class AdapterTraining(Table):
    """An adapter trained on a frozen body, in place of the body.

    Of the kinds' tables only that of the chosen one may be given. heads: whether the heads train with it,
    and are saved with it. below: folders or hub ids of trained adapters of the same base that lie under it,
    the innermost first. mask_batches: batches on which kind sparse chooses its weights. description, language
    and domain are saved with it. routing: there are several of them.
    """

    kind: AdapterKind
    heads: bool = True
    below: Many[str] = ()
    mask_batches: AtLeast1 = 32
    description: str = ""
    language: str | None = None
    domain: str | None = None
    routing: RoutingSettings | None = None
    lora: Annotated[LoraSettings | None, _as_on_disk("lora")] = None
    ia3: Annotated[Ia3Settings | None, _as_on_disk("ia3")] = None
    bias: Annotated[BiasSettings | None, _as_on_disk("bias")] = None
    sparse: Annotated[SparseSettings | None, _as_on_disk("sparse")] = None
    prefix: Annotated[PrefixSettings | None, _as_on_disk("prefix")] = None
    prompt: Annotated[PromptSettings | None, _as_on_disk("prompt")] = None
    bottleneck: Annotated[BottleneckSettings | None, _as_on_disk("bottleneck")] = None
    mix_and_match: Annotated[MixAndMatchSettings | None, _as_on_disk("mix_and_match")] = None
    unipelt: Annotated[UnipeltSettings | None, _as_on_disk("unipelt")] = None
    hypernetwork: HypernetworkTraining | None = None
    fusion: FusionTraining | None = None

    @property
    def chosen(self) -> AdapterSettings:
        """The settings of the kind; those of a fusion and a hypernetwork follow from modules and sources."""
        given: AdapterSettings | None = getattr(self, self.kind)
        return KINDS[self.kind]() if given is None else given

    @model_validator(mode="after")
    def _no_other_kind(self) -> AdapterTraining:
        for kind in get_args(AdapterKind):
            left_out = kind == self.kind or getattr(self, kind) is None
            require(left_out, kind, "given", f"left out for an adapter of kind {self.kind}")
        return self

    @model_validator(mode="after")
    def _fusion_has_modules(self) -> AdapterTraining:
        named = self.kind != "fusion" or self.fusion is not None
        require(named, "fusion", "left out", "given for an adapter of kind fusion")
        return self

    @model_validator(mode="after")
    def _modules_lie_on_the_base(self) -> AdapterTraining:
        require(self.routing is None or not self.below, "below", "given", "left out with routing")
        alone = self.routing is not None and self.kind in ("prompt", "sparse", "hypernetwork", "fusion")
        require(not alone, "kind", self.kind, "another one with routing")
        return self
