"""How a checkpoint of the ColBERT family treats queries and documents unlike each other.

A marker token after the first one tells the encoder which of both a text is; queries are filled up with mask
tokens, each of which has a vector (query augmentation: Khattab and Zaharia 2020, section 3.2); documents have
no vectors for some tokens, such as punctuation. All other tokens have one, special tokens included.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, get_args

from tercet.models.errors import CheckpointError
from tercet.models.representations import InputType

KEY = "late_interaction"


@dataclass(frozen=True, slots=True)
class LateInteraction:
    """What `tercet.json` says under `late_interaction`. Lengths in tokens, special tokens included.

    query_marker, document_marker: a token after the first of each text, by its exact piece; empty for none.
    query_length: of a query at most, None for the limit of documents; expansion_length: queries are filled up
    to so many, None for not at all; expansion_token: with these, None for the vocabulary's mask token;
    attend_to_expansion: whether the other tokens see them; skiplist: tokens without a vector, those that the
    vocabulary has; skiplist_types: in which texts.
    """

    query_marker: str = ""
    document_marker: str = ""
    query_length: int | None = None
    expansion_length: int | None = None
    expansion_token: str | None = None
    attend_to_expansion: bool = False
    skiplist: tuple[str, ...] = ()
    skiplist_types: tuple[InputType, ...] = ("document",)

    def __post_init__(self) -> None:
        for name in ("query_marker", "document_marker", "expansion_token"):
            value = getattr(self, name)
            if not isinstance(value, str) and not (value is None and name == "expansion_token"):
                raise CheckpointError(f"{KEY}.{name} is {value!r}; it must be a string")
        for name in ("query_length", "expansion_length"):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < 4):
                raise CheckpointError(f"{KEY}.{name} is {value!r}; it must be a whole number of at least 4")
        if not isinstance(self.attend_to_expansion, bool):
            raise CheckpointError(
                f"{KEY}.attend_to_expansion is {self.attend_to_expansion!r}; it must be true or false"
            )
        if not all(isinstance(word, str) for word in self.skiplist):
            raise CheckpointError(f"{KEY}.skiplist is {self.skiplist!r:.80}; it must be a list of strings")
        if not set(self.skiplist_types) <= set(get_args(InputType)):
            raise CheckpointError(
                f"{KEY}.skiplist_types is {list(self.skiplist_types)}; it may have {get_args(InputType)}"
            )
        if None not in (self.query_length, self.expansion_length) and (
            (self.expansion_length or 0) > (self.query_length or 0)
        ):
            raise CheckpointError(
                f"{KEY}.expansion_length is {self.expansion_length}, above query_length {self.query_length}; "
                "queries are filled up to what they may have at most"
            )

    def marker(self, input_type: InputType) -> str:
        """The marker of texts of this type, empty for none."""
        return self.query_marker if input_type == "query" else self.document_marker

    def to_json(self) -> dict[str, Any]:
        """All as a JSON object."""
        return {
            name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()
        }

    @staticmethod
    def from_json(values: object) -> LateInteraction:
        """From a JSON object; absent keys take their defaults. Raises CheckpointError."""
        known = [field.name for field in fields(LateInteraction)]
        if not isinstance(values, Mapping):
            raise CheckpointError(f"{KEY} is {values!r:.80}; it must be an object with keys of {known}")
        unknown = sorted(set(values) - set(known))
        if unknown:
            raise CheckpointError(f"{KEY} has unknown keys {unknown}; it may have {known}")
        given = dict(values)
        for name in ("skiplist", "skiplist_types"):
            if name in given:
                if not isinstance(given[name], list):
                    raise CheckpointError(
                        f"{KEY}.{name} is {given[name]!r:.80}; it must be a list of strings"
                    )
                given[name] = tuple(map(str, given[name])) if name == "skiplist_types" else tuple(given[name])
        return LateInteraction(**given)
