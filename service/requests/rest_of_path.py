"""A path parameter that takes whatever is left of the path."""

from __future__ import annotations

from starlette.convertors import PathConvertor, register_url_convertor

REST_OF_PATH = "anything"  # as in "/documents/{id:anything}"


class _RestOfPath(PathConvertor):
    """Starlette's `path` ends at a line break; an id may hold one."""

    regex = "(?s:.*)"


register_url_convertor(REST_OF_PATH, _RestOfPath())
