"""Text in the target of a request, path and query: percent-encoded UTF-8, or none.

What decodes it for the routes puts U+FFFD in the place of other bytes, which is the text of another target.
"""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

from tercet.service.http.asgi import Scope

SHOWN_BYTES = 80


def problem_of_target(scope: Scope) -> str | None:
    """What is wrong with a target that is no UTF-8; None where it is."""
    for part, text in (("path", scope.get("raw_path") or b""), ("query", scope["query_string"])):
        if b"%" not in text and text.isascii():
            continue
        try:
            unquote_to_bytes(text).decode()
        except UnicodeDecodeError as error:
            found = error.object[error.start : error.end].hex(" ").upper()
            shown = text[:SHOWN_BYTES].decode("latin-1")
            return f"the {part} {shown!r} has the bytes {found}, which are no UTF-8: encode text as that"
    return None
