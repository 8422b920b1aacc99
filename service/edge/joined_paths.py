"""Paths as clients of other services make them."""

from __future__ import annotations

import re

BEGINNINGS = ("/v1/", "/v2/", "/tei/", "/jina/", "/api/", "/dify/")
SLASHES = re.compile("/{2,}")


def joined(path: str) -> str:
    """The path with one slash where a base address that ends in one left two; others as they are."""
    return SLASHES.sub("/", path) if "//" in path and path.startswith(BEGINNINGS) else path
