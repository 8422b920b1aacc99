"""The linear layers of a body laid out as BERT: their roles in a block, their sizes and their order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from tercet.models.errors import CheckpointError

Role = Literal["query", "key", "value", "attention_output", "intermediate", "output", "residual"]
# Where the layer of each role is within a block of BERT, RoBERTa, XLM-RoBERTa, CamemBERT and ELECTRA.
PATHS: dict[Role, str] = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "attention_output": "attention.output.dense",
    "intermediate": "intermediate.dense",
    "output": "output.dense",
}
# Roles of linear layers. That of the residual around the feed-forward sub-layer is the identity.
ROLES = tuple(PATHS)
# Far above any body: what a damaged file says is not counted through.
LARGEST = {"layers": 1024, "hidden_size": 1 << 17, "intermediate_size": 1 << 19}


class Matrix(NamedTuple):
    """Weights float[out, in] of a linear layer, and the index of the first one among those of all blocks."""

    layer: int
    role: Role
    start: int
    shape: tuple[int, int]

    @property
    def size(self) -> int:
        """How many weights it has."""
        return self.shape[0] * self.shape[1]


@dataclass(frozen=True, slots=True)
class BodyShape:
    """Sizes of a body that adapters depend on: blocks, width of the hidden states, feed-forward width."""

    layers: int
    hidden_size: int
    intermediate_size: int

    def __post_init__(self) -> None:
        for name in ("layers", "hidden_size", "intermediate_size"):
            require_whole(name, getattr(self, name), 1)
            if getattr(self, name) > LARGEST[name]:
                raise CheckpointError(f"{name} is {getattr(self, name)}; it must be at most {LARGEST[name]}")

    @staticmethod
    def of_config(config: Mapping[str, Any]) -> BodyShape:
        """From a model's config.json. Raises CheckpointError where it lacks a size."""
        keys = ("num_hidden_layers", "hidden_size", "intermediate_size")
        missing = [key for key in keys if key not in config]
        if missing:
            raise CheckpointError(
                f"the model's configuration has no {missing}; adapters need the blocks of BERT or XLM-RoBERTa"
            )
        return BodyShape(*(config[key] for key in keys))

    def sizes(self, role: Role) -> tuple[int, int]:
        """Width of the input and of the output of the linear layer with this role."""
        wide, narrow = self.intermediate_size, self.hidden_size
        return (wide if role == "output" else narrow), (wide if role == "intermediate" else narrow)

    def matrices(self) -> Iterator[Matrix]:
        """The weights of all linear layers, in the order in which they are counted."""
        start = 0
        for layer in range(self.layers):
            for role in ROLES:
                wide, out = self.sizes(role)
                yield Matrix(layer, role, start, (out, wide))
                start += wide * out


def require_whole(name: str, value: object, least: int) -> None:
    """Raises CheckpointError unless a value is a whole number of at least `least`."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise CheckpointError(f"{name} is {value!r}; it must be a whole number of at least {least}")
