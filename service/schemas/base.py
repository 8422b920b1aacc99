"""What the shapes of requests and answers are made of."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from index.documents.numbers import as_integer

NAME_PATTERN = r"^[a-z0-9][a-z0-9_-]{0,63}$"


def _whole(value: object) -> object:
    """JSON has one kind of number, so 3.0 is the integer 3."""
    return as_integer(value) if isinstance(value, float) else value


# Last in an annotation: bounds that follow it are checked, but Pydantic does not describe them.
WHOLE = BeforeValidator(_whole)
Integer = Annotated[int, WHOLE]


def at_most(limit: int, what: str) -> BeforeValidator:
    """Counts an object's entries before they are checked: of a million wrong ones each would be an error."""

    def check(value: object) -> object:
        if isinstance(value, dict) and len(value) > limit:
            raise ValueError(f"{len(value)} {what}; the limit is {limit}")
        return value

    return BeforeValidator(check)


ADAPTER_PATTERN = r"^[a-z0-9][a-z0-9_-]{0,63}(:[A-Za-z0-9][A-Za-z0-9_-]{0,63})?$"
AdapterName = Annotated[
    str,
    Field(
        pattern=ADAPTER_PATTERN,
        description="An adapter or router of the encoder; `GET /info` lists them. A fixed router may be "
        "given a tag, as `by-language:ko`.",
    ),
]
Text = Annotated[str, Field(description="A text; characters are limited by the setting `max_characters`.")]
Texts = Annotated[list[Text], Field(min_length=1, fail_fast=True)]


class Request(BaseModel):
    """A request body: JSON types are taken as they are, unknown fields are errors."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _few_unknown(cls, value: object) -> object:
        """Keeps one unknown field to complain of: a million of them would be a million complaints."""
        if not isinstance(value, dict) or len(value) <= len(cls.model_fields):
            return value
        known = {name: value[name] for name in cls.model_fields if name in value}
        unknown = next(name for name in value if name not in known)
        return {**known, unknown: value[unknown]}


class Usage(BaseModel):
    """What a request cost."""

    tokens: int
