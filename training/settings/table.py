"""What every table of settings has in common, and the kinds of numbers in them."""

from __future__ import annotations

from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from tercet.index.wording import shown

Value = TypeVar("Value")
# Lists of the file become tuples, so that settings stay as they were read.
Many = Annotated[tuple[Value, ...], Field(strict=False)]

AtLeast0 = Annotated[int, Field(ge=0)]
AtLeast1 = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0)]
Factor = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(gt=0, lt=1)]


class Table(BaseModel):
    """A table of settings. An unknown key fails, and so does a value of another type; numbers are finite."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


def require(holds: bool, keys: str, value: object, rule: str) -> None:
    """Raises ValueError, its message led by the keys, unless a rule about several settings holds."""
    if not holds:
        raise ValueError(f"{keys}: it is {shown(value)}, but must be {rule}")
