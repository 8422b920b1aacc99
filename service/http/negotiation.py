"""What a client prefers of what the server offers: `Accept` and `Accept-Encoding` (RFC 9110, section 12.5).

The highest quality wins. Of equal ones that which was named wins over one that a wildcard stands for, and
then the server's own order.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from urllib.request import parse_http_list

IDENTITY = "identity"
QUALITY = re.compile(r"0(\.\d{0,3})?|1(\.0{0,3})?")
LEAST = 0.0005  # below the least quality that can be stated


def preferred_type(accept: Sequence[str], offers: Sequence[str]) -> str:
    """The media type to answer with; the first offer where the client states nothing or takes none of them.

    accept: the values of all `Accept` headers; offers: the server's, best first. Parameters of a type count
    as a match, since no offer has any.
    """
    return _preferred_type(tuple(accept), tuple(offers))


@lru_cache(maxsize=256)  # clients send a few
def _preferred_type(accept: tuple[str, ...], offers: tuple[str, ...]) -> str:
    names = {offer: (offer, offer.partition("/")[0] + "/*", "*/*") for offer in offers}
    return _preferred(_qualities(accept), names, offers[0])


def preferred_encoding(accept_encoding: Sequence[str], offers: Sequence[str]) -> str:
    """The content coding to answer with; `identity` where the client states nothing or takes none of them.

    offers: the server's, best first. A client that names codings takes `identity` as the last resort unless
    it refuses it.
    """
    stated = _qualities(accept_encoding)
    if "*" not in stated:
        stated.setdefault(IDENTITY, LEAST)
    return _preferred(stated, {offer: (offer, "*") for offer in (*offers, IDENTITY)}, IDENTITY)


def refuses_identity(accept_encoding: Sequence[str]) -> bool:
    """Whether the client wants no answer that is not encoded: `identity;q=0`, or `*;q=0` without it."""
    stated = _qualities(accept_encoding)
    return stated.get(IDENTITY, stated.get("*", LEAST)) == 0


def _preferred(stated: Mapping[str, float], names: Mapping[str, Sequence[str]], otherwise: str) -> str:
    """names: of each offer the names that it goes by, its own first; otherwise: where none is taken."""

    def rank(offer: str) -> tuple[float, int]:
        for place, name in enumerate(names[offer]):
            if name in stated:
                return stated[name], -place
        return 0.0, 0

    best = max(names, key=rank)  # the first of equals
    return best if rank(best)[0] > 0 else otherwise


def _qualities(values: Sequence[str]) -> dict[str, float]:
    """Lower-case name → quality; what has a quality that is none is left out."""
    stated: dict[str, float] = {}
    for element in parse_http_list(", ".join(values)):
        name, *parameters = (part.strip().lower() for part in element.split(";"))
        given = [
            value.strip() for key, _, value in (p.partition("=") for p in parameters) if key.strip() == "q"
        ]
        if all(QUALITY.fullmatch(value) for value in given):
            stated[name] = float(given[0]) if given else 1.0
    return stated
