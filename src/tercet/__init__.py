"""Hybrid retrieval: dense vectors, lexical weights and ColBERT token vectors of one pass, and their exact
sum.

`load` gives an encoder, and `open` the collections of a data root. Nothing heavy is loaded before one of the
names below is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tercet.embedded.encoder import Encoded, Encoder, PairScore, SparseVector, load
    from tercet.embedded.errors import ApiError, ConflictError, NotFoundError, OverloadedError, TercetError
    from tercet.embedded.store import Store
    from tercet.embedded.store import open_store as open

__all__ = [
    "ApiError",
    "ConflictError",
    "Encoded",
    "Encoder",
    "NotFoundError",
    "OverloadedError",
    "PairScore",
    "SparseVector",
    "Store",
    "TercetError",
    "load",
    "open",
]

# Public name → the module that has it, and its name there.
_HOMES = {
    **{
        name: ("tercet.embedded.encoder", name)
        for name in ("Encoded", "Encoder", "PairScore", "SparseVector", "load")
    },
    **{
        name: ("tercet.embedded.errors", name)
        for name in ("ApiError", "ConflictError", "NotFoundError", "OverloadedError", "TercetError")
    },
    "Store": ("tercet.embedded.store", "Store"),
    "open": ("tercet.embedded.store", "open_store"),
}


def __getattr__(name: str) -> Any:
    """A public name, from the module that has it. Raises AttributeError."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, own_name = _HOMES[name]
    return getattr(import_module(module), own_name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
