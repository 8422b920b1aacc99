"""Settings of `tercet train` about what a run starts from."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from tercet.training.settings.table import AtLeast1, Table, require


class BaseSettings(Table):
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

    @model_validator(mode="after")
    def _single_source(self) -> BaseSettings:
        given = bool(self.checkpoint) + bool(self.package)
        require(given == 1, "checkpoint and package", given, "1 of the two")
        if self.package:
            require(not self.revision, "revision", self.revision, "left out with a package")
        else:
            require(not self.folder, "folder", self.folder, "left out without a package")
        return self


class ArchitectureSettings(Table):
    """A new BERT of random weights in place of the base's body; the base then gives the tokenizer only.

    width: of a hidden state; positions: the longest input in tokens.
    """

    layers: AtLeast1
    width: AtLeast1
    attention_heads: AtLeast1
    intermediate: AtLeast1
    positions: Annotated[int, Field(ge=4)] = 512
    pooling: Literal["cls", "mean"] = "cls"

    @model_validator(mode="after")
    def _heads_divide_the_width(self) -> ArchitectureSettings:
        divides = self.width % self.attention_heads == 0
        require(divides, "width", self.width, f"a multiple of attention_heads, {self.attention_heads}")
        return self


class EncodingOverrides(Table):
    """What the written `tercet.json` says about encoding where it is not what the base says.

    lexical: what it recommends to collections; training scores as they will. positions: of the written model,
    for longer texts than the base's; see `tercet.training.runs.positions`.
    """

    pooling: Literal["cls", "mean"] | None = None
    max_length: int | None = None
    positions: int | None = None
    lower_capitals: bool | None = None
    query_instruction: str | None = None
    document_instruction: str | None = None
    mcls_every: int | None = None
    lexical: Literal["plain", "idf"] | None = None
