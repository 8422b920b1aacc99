"""Idempotency keys of requests: what tells a repeat from another request under the same key."""

from __future__ import annotations

import hashlib
from typing import Any

import orjson

from tercet.index.live.records import WriteKey
from tercet.service.exceptions import InvalidRequestError

KEY_BYTES = 255
LEVELS = 250  # about as many are written; a thousand are read


def write_key(
    key: str | None,
    route: str,
    names: tuple[str, ...],
    body: dict[str, Any] | bytes | None = None,
    digest: str | None = None,
) -> WriteKey | None:
    """The key of a write, with the digest of its request; None without one.

    route: method and path as documented; names: what the path names; body: without the key, of plain values
    and of objects that `dict` takes apart; digest: one that came with the request, instead of these.
    Raises InvalidRequestError for a key that is empty or too long, or a body that nests too deeply.
    """
    if key is None:
        return None
    size = len(key.encode("utf-8", "surrogatepass"))
    if not 1 <= size <= KEY_BYTES:
        raise InvalidRequestError(
            f"idempotency_key has {size} bytes; use 1 to {KEY_BYTES} bytes of UTF-8", "idempotency_key"
        )
    if digest is not None:
        return WriteKey(key, digest)
    hashed = hashlib.sha256(orjson.dumps([route, *names]))
    try:
        content = body if isinstance(body, bytes) else orjson.dumps(body, dict, orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError as error:  # what was parsed fails only by its depth
        raise InvalidRequestError(
            f"the body nests deeper than {LEVELS} levels, too deep to tell a repeat of it: flatten it"
        ) from error
    hashed.update(content)
    return WriteKey(key, hashed.hexdigest())


def given_key(header: str | None, body: str | None) -> str | None:
    """The key that a request gives. Raises InvalidRequestError where header and body have different ones."""
    if header is not None and body is not None and header != body:
        raise InvalidRequestError(
            "the header Idempotency-Key and idempotency_key differ; give one of them", "idempotency_key"
        )
    return body if header is None else header
