"""The shape of `filter`, for the description alone: `index/documents/filters.py` parses and checks one."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, RootModel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from tercet.index.documents.filters import MAX_CONDITIONS, MAX_DEPTH, MAX_VALUES

Scalar = str | bool | float
SingleField = Field(min_length=1, max_length=1, description="A declared field, and what it is compared with.")
Comparison = Annotated[dict[str, Scalar], SingleField]


class _Operation(BaseModel):
    """One operation: an object with this key alone."""

    model_config = ConfigDict(extra="forbid")


class AndFilter(_Operation):
    """All of the filters match."""

    and_: list[Filter] = Field(alias="and", min_length=1)


class OrFilter(_Operation):
    """At least one of the filters matches."""

    or_: list[Filter] = Field(alias="or", min_length=1)


class NotFilter(_Operation):
    """The filter does not match; so it is where the document has no value."""

    not_: Filter = Field(alias="not")


class EqFilter(_Operation):
    """The field, or one of a list's strings, has the value."""

    eq: Comparison


class InFilter(_Operation):
    """The field, or one of a list's strings, has one of the values."""

    in_: Annotated[dict[str, Annotated[list[Scalar], Field(max_length=MAX_VALUES)]], SingleField] = Field(
        alias="in"
    )


class GteFilter(_Operation):
    """The field's value is the limit or more; strings compare by their UTF-8 bytes."""

    gte: Comparison


class GtFilter(_Operation):
    """The field's value is more than the limit."""

    gt: Comparison


class LteFilter(_Operation):
    """The field's value is the limit or less."""

    lte: Comparison


class LtFilter(_Operation):
    """The field's value is less than the limit."""

    lt: Comparison


class ExistsFilter(_Operation):
    """The field has a value."""

    exists: str


class Filter(
    RootModel[
        AndFilter
        | OrFilter
        | NotFilter
        | EqFilter
        | InFilter
        | GteFilter
        | GtFilter
        | LteFilter
        | LtFilter
        | ExistsFilter
    ]
):
    __doc__ = (
        "A tree over the collection's declared fields, told apart by its one key; at most "
        f"{MAX_DEPTH} levels, {MAX_CONDITIONS:,} conditions and {MAX_VALUES:,} values."
    )


class DescribedAs:
    """Describes a field as a model without validating it as one, which would cost more than parsing it."""

    def __init__(self, model: type[BaseModel]) -> None:
        self._model = model

    def __get_pydantic_json_schema__(
        self, _schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return handler(self._model.__pydantic_core_schema__)


FilterTree = Annotated[dict[str, Any], DescribedAs(Filter)]
