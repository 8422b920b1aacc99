"""A path parameter that takes whatever is left of the path."""

from __future__ import annotations

from starlette.convertors import PathConvertor, register_url_convertor

ANYTHING = "anything"  # as in "/documents/{id:anything}"


class _Anything(PathConvertor):
    """Starlette's `path` ends at a line break; an id may hold one."""

    regex = "(?s:.*)"


register_url_convertor(ANYTHING, _Anything())
