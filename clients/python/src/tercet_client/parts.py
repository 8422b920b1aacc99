"""Parts of requests: paths, pages of lists, which documents are meant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from tercet_client.types import Filter

Parameter = str | bool | int | Sequence[str] | None
"""A parameter of a query; a sequence gives it several times."""


def address_of(url: str) -> str:
    """The address of a server. Raises ValueError where it is none, which no repeat would mend."""
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"url is {url!r}; give one such as http://127.0.0.1:8080")
    return url


def path_of(*parts: str) -> str:
    """A path of these parts, which may hold any characters."""
    return "/" + "/".join(_part(part) for part in parts)


def _part(part: str) -> str:
    """One part of a path. `.` and `..` as they are would be steps, taken before the request is sent."""
    return part.replace(".", "%2E") if part in (".", "..") else quote(part, safe="")


def page_of(limit: int | None, after: str | None) -> dict[str, str]:
    """The parameters that ask for a page of a list; none for all of it."""
    given = {"limit": None if limit is None else str(limit), "after": after}
    return {name: value for name, value in given.items() if value is not None}


def query_of(options: Mapping[str, Parameter], **own: Parameter) -> dict[str, str | list[str]]:
    """The parameters of a query. own: those that a method sets itself."""
    given = {**options, **own}
    return {name: _parameter(value) for name, value in given.items() if value is not None}


def _parameter(value: str | bool | int | Sequence[str]) -> str | list[str]:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int) else list(value)


def which(ids: Sequence[str] | None, filter: Filter | None, partition: str | None) -> dict[str, Any]:
    """The part of a body that says which documents are meant."""
    given = {"ids": None if ids is None else list(ids), "filter": filter, "partition": partition}
    return {name: value for name, value in given.items() if value is not None}
