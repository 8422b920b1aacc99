"""How lexical weights come from the head of a masked language model, instead of a linear head of their own.

A text's weight of a term t of the vocabulary is f(logit of t), joined over all its tokens by their maximum
or their sum, with f = log(1 + relu(·)) of SPLADE, https://arxiv.org/abs/2109.10086, or a second logarithm of
that, log(1 + log(1 + relu(·))), https://arxiv.org/abs/2504.14839. So a text has terms that it does not say.
Special tokens are counted like any other, and are terms like any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from tercet.models.errors import CheckpointError

HIDDEN = "hidden"  # the output of a pass that the head takes: last hidden states float32[B, L, d]
Joining = Literal["max", "sum"]
Activation = Literal["relu", "log1p_relu"]
QueryWeights = Literal["model", "table"]
_CHOICES = {"pooling": Joining, "activation": Activation, "queries": QueryWeights}


@dataclass(frozen=True, slots=True)
class SpladeSettings:
    """`splade` of `tercet.json`.

    pooling: how the tokens' weights of a term are joined; activation: `relu`, or `log1p_relu` for a second
    logarithm; max_terms: how many of a text's terms are kept, the largest, by default all; queries: whether
    their weights come from the model, or from a table with the weight of each token, without the model.
    """

    pooling: Joining = "max"
    activation: Activation = "relu"
    max_terms: int | None = None
    queries: QueryWeights = "model"

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if value not in get_args(choices):
                raise CheckpointError(f"splade.{name} is {value!r}; it must be one of {get_args(choices)}")
        most = self.max_terms
        if most is not None and (not isinstance(most, int) or isinstance(most, bool) or most < 1):
            raise CheckpointError(
                f"splade.max_terms is {most!r}; it must be a whole number of at least 1, or null for all"
            )

    @staticmethod
    def from_json(values: object) -> SpladeSettings:
        """Settings from a JSON object; absent keys take their defaults, unknown keys fail.

        Raises CheckpointError for an unknown key or a value out of range.
        """
        known = [field.name for field in fields(SpladeSettings)]
        if not isinstance(values, Mapping):
            raise CheckpointError(f"splade is {values!r}; it must be an object, which may have {known}")
        unknown = sorted(set(values) - set(known))
        if unknown:
            raise CheckpointError(f"splade has unknown keys {unknown}; it may have {known}")
        return SpladeSettings(**values)

    @property
    def of_graph(self) -> dict[str, Any]:
        """What an exported graph has built in."""
        return {"pooling": self.pooling, "activation": self.activation}
