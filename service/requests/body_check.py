"""Bodies of JSON held against what their route takes: sizes first, then types, up to the first complaint."""

from __future__ import annotations

from typing import Any

from fastapi.exceptions import RequestValidationError
from pydantic import TypeAdapter, ValidationError

from tercet.service.settings.settings import RequestLimits


class BodyCheck:
    """Makes of a JSON value what one route's handler takes.

    The shapes in `service/schemas/` bound the work: their lists are counted before their items are looked at,
    end at the first one that is wrong, and of alternatives one alone is tried. So that what a body may hold
    is checked within milliseconds, and what is complained of is little.
    """

    def __init__(self, annotation: Any, location: tuple[str, ...] = ("body",)) -> None:
        """location: where the value is in a request, for the complaint."""
        self._adapter: TypeAdapter[Any] = TypeAdapter(annotation)
        self._location = location

    def checked(self, value: Any, limits: RequestLimits) -> Any:
        """The value as the route's type. Raises RequestValidationError."""
        try:
            return self._adapter.validate_python(value, context=limits)
        except ValidationError as error:
            errors = error.errors(include_url=False)
            details = [{**detail, "loc": (*self._location, *detail["loc"])} for detail in errors]
            raise RequestValidationError(details, body=value) from error
