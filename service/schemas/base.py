"""What the shapes of requests and answers are made of."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from difflib import get_close_matches
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    GetJsonSchemaHandler,
    Tag,
    ValidationInfo,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError

from tercet.index.documents.numbers import as_integer
from tercet.index.documents.partitions import MAX_PARTITION_BYTES
from tercet.service.invalid_values import LEAVE_OUT, NONE_OF_THESE, TOO_MANY, UnknownField
from tercet.service.invalid_values import NAME_PATTERN as NAME_PATTERN
from tercet.service.settings.settings import RequestLimits

LONGEST_NAME = 80  # characters that are looked at of a field that is none
LISTED = "listed"  # type of the complaint about a list that ought to be in an object
# What a field is called elsewhere → its names here, of which a body has one at most.
ELSEWHERE: Mapping[str, tuple[str, ...]] = {
    "limit": ("top_k",),
    "k": ("top_k",),
    "n": ("top_k",),
    "size": ("top_k",),
    "q": ("query",),
    "where": ("filter",),
    "lexical": ("sparse",),
    "multi_vector": ("colbert",),
    "input": ("inputs",),
    "text": ("inputs", "query"),
    "texts": ("inputs",),
    "items": ("documents",),
    "content": ("text",),
}


def _whole(value: object) -> object:
    """JSON has one kind of number, so 3.0 is the integer 3."""
    return as_integer(value) if isinstance(value, float) else value


# Last in an annotation: bounds that follow it are checked, but Pydantic does not describe them.
WHOLE = BeforeValidator(_whole)
Integer = Annotated[int, WHOLE]


def at_most(limit: int, what: str, remedy: str) -> BeforeValidator:
    """Counts an object's entries before they are checked: of a million wrong ones each would be an error."""

    def check(value: object) -> object:
        if isinstance(value, dict) and len(value) > limit:
            raise ValueError(f"{len(value)} {what}; the limit is {limit}: {remedy}")
        return value

    return BeforeValidator(check)


CountLimit = Literal["texts", "documents", "write_documents", "queries"]
"""A limit of `RequestLimits`; its setting is called so after `max_`."""


def too_many(count: int, limit: CountLimit, what: str, limits: RequestLimits) -> PydanticCustomError | None:
    """The complaint about so many of something; None within the limit."""
    most = getattr(limits, limit)
    if count <= most:
        return None
    return PydanticCustomError(
        TOO_MANY,
        "has {count} {what}; the limit is {limit} (setting {setting}): split the request",
        {"count": count, "what": what, "limit": most, "setting": f"max_{limit}"},
    )


def counted(limit: CountLimit, what: str) -> BeforeValidator:
    """Counts a list's items before any is checked. Last in an annotation.

    The context of the validation is a `RequestLimits`; without one nothing is counted.
    """

    def check(value: object, info: ValidationInfo) -> object:
        if isinstance(value, list) and info.context is not None:
            complaint = too_many(len(value), limit, what, info.context)
            if complaint is not None:
                raise complaint
        return value

    return BeforeValidator(check)


class _AnyOf:
    """Describes alternatives without saying that only one may fit: an empty list fits several."""

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        described = handler(schema)
        if "oneOf" in described:
            described["anyOf"] = described.pop("oneOf")
        return described


def discriminated(kind: Callable[[Any], str], use: str) -> tuple[Discriminator, _AnyOf]:
    """Annotates a union of tagged alternatives: a value is held against the one alone that it is meant to be.

    A plain union checks all of them, and complains of each. kind: the tag of a value, another where it is
    none of them; use: what may be given instead of such a one.
    """
    return Discriminator(kind, NONE_OF_THESE, use), _AnyOf()


MOST_SHARDS = 1024
POSITION_PATTERN = rf"^[0-9]{{1,19}}(\.[0-9]{{1,19}}){{0,{MOST_SHARDS - 1}}}$"
_Number = Annotated[int, Field(ge=0, lt=2**63), WHOLE]
_Numbers = Annotated[str, Field(pattern=POSITION_PATTERN)]
Position = Annotated[
    int | str,
    Field(
        description="The collection's position, which grows by one with each write; over shards a text of "
        "one number for each, as `3.17.2`."
    ),
]
GivenPosition = Annotated[
    Annotated[_Number, Tag("number")] | Annotated[_Numbers, Tag("numbers")],
    *discriminated(
        lambda value: "numbers" if isinstance(value, str) else "number",
        "use a position as answers to writes have it",
    ),
]
MinPosition = Annotated[
    GivenPosition,
    Field(
        description="A position of the collection, from the answer to a write: the answer has what was "
        "written up to it, or is an error once the time of the request is over."
    ),
]
Partition = Annotated[str, Field(min_length=1, max_length=MAX_PARTITION_BYTES)]
NextPage = Annotated[
    str | None,
    Field(description="`after` of the next page, null on the last; only where `limit` or `after` was given."),
]
_ADAPTER, _TAG = r"[a-z0-9][a-z0-9_-]{0,63}", r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}"
ADAPTER_PATTERN = rf"^{_ADAPTER}((\+{_ADAPTER}){{1,2}}|(:{_TAG}){{1,2}})?$"
AdapterName = Annotated[
    str,
    Field(
        pattern=ADAPTER_PATTERN,
        description="An adapter or router of the encoder; `GET /info` lists them. A fixed router may be "
        "given a tag, as `by-language:ko`, or two, as `by-both:ko:law`. A hypernetwork's name goes with "
        "a language and a task, as `world+ko+law`.",
    ),
]
ModelName = Annotated[str, Field(min_length=1, max_length=500)]
Text = Annotated[str, Field(description="A text; characters are limited by the setting `max_characters`.")]
Texts = Annotated[list[Text], Field(min_length=1, fail_fast=True)]


class Body(BaseModel):
    """An object of a request's body: JSON types are taken as they are, and `null` means the default."""

    model_config = ConfigDict(strict=True)
    list_field: ClassVar[str | None] = None
    """What a list is probably meant to be where the object is to be."""
    rest_field: ClassVar[str | None] = None
    """Where unknown fields probably belong."""

    @model_validator(mode="before")
    @classmethod
    def _plain(cls, value: object) -> object:
        """Leaves out what is null and may be missing, and all unknown fields but one, which gets a remedy as
        its value.

        A million of them would be a million complaints.
        """
        if isinstance(value, list) and cls.list_field is not None:
            raise PydanticCustomError(LISTED, 'a list; send {"{field}": […]}', {"field": cls.list_field})
        if not isinstance(value, dict):
            return value
        fields = cls.model_fields
        if not value.keys() <= fields.keys():
            known = {name: value[name] for name in fields if name in value}
            unknown = next(name for name in value if name not in known)
            value = {**known, unknown: UnknownField(cls._remedy(unknown, known))}
        if None in value.values():
            value = {
                name: inner
                for name, inner in value.items()
                if inner is not None or name not in fields or fields[name].is_required()
            }
        return value

    @classmethod
    def _remedy(cls, name: str, known: Container[str]) -> str:
        """What to do with an unknown field: the name of one that is called so elsewhere or much like it, or
        the list of such objects. known: the other fields.
        """
        written = name[:LONGEST_NAME].lower()
        elsewhere = [field for field in ELSEWHERE.get(written, ()) if field in cls.model_fields]
        for near in (*elsewhere, *get_close_matches(written, cls.model_fields, 1)):
            return f"did you mean {near}?"
        if cls.list_field is not None and cls.list_field not in known:
            return f'send {{"{cls.list_field}": […]}}'
        return LEAVE_OUT if cls.rest_field is None else f"put it into {cls.rest_field}"


class Request(Body):
    """A body of a route of our own: unknown fields are errors."""

    model_config = ConfigDict(extra="forbid")


class NoFields(Request):
    """What a route takes that takes nothing."""


class Usage(BaseModel):
    """What a request cost."""

    tokens: int
