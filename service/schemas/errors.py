"""The shape of every error."""

from __future__ import annotations

from pydantic import BaseModel, Field

REFERENCE = "#/components/schemas/{model}"  # to a shape, in the description


class ErrorDetail(BaseModel):
    """What went wrong."""

    type: str = Field(description="The kind of failure, one for each status.")
    message: str = Field(description="For people: the value, the limit and the remedy.")
    param: str | None = Field(description="The field that is wrong, such as `candidates.dense`.")
    code: str = Field(description="For programs: what exactly is wrong.")


class ErrorResponse(BaseModel):
    """The shape of every error."""

    error: ErrorDetail
