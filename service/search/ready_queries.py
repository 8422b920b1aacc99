"""Ready representations of a query, checked against the encoder and against what the search needs."""

from __future__ import annotations

from collections.abc import Sequence

from index.candidates import CandidateLimits, Weights
from models.encoder import EncoderInfo
from models.representations import Float32, Representations
from service.exceptions import InvalidRequestError
from service.ready_representations import ready_text


def ready_query(
    dense: Sequence[float] | Float32 | None,
    sparse: tuple[Sequence[int], Sequence[float]] | None,
    colbert: Sequence[Sequence[float]] | Float32 | None,
    info: EncoderInfo,
    param: str = "query",
) -> Representations:
    """One query from lists or arrays of finite numbers; sparse is token ids and weights, param its name.

    Its vectors may have any length, as means of several texts' have: that changes no order within a side.
    Raises InvalidRequestError that names the side whose shape or ids do not fit the encoder.
    """
    if colbert is not None and len(colbert) > info.max_length:
        raise InvalidRequestError(
            f"{param}.colbert has {len(colbert)} vectors; {info.name} makes at most {info.max_length}",
            f"{param}.colbert",
        )
    return ready_text(dense, sparse, colbert, info, param, unit=False)


def require_sides(
    query: Representations,
    text: str | None,
    weights: Weights,
    candidates: CandidateLimits,
    param: str = "query",
) -> None:
    """Raises InvalidRequestError for a side that is missing, but has a weight or proposes candidates."""
    if weights.bm25 and text is None:
        raise InvalidRequestError(
            f"{param}.text is missing: give it, or set weights.bm25 to 0", f"{param}.text"
        )
    needed = {
        "dense": weights.dense or candidates.dense,
        "sparse": weights.sparse or candidates.sparse,
        "colbert": weights.colbert,
    }
    for side, is_needed in needed.items():
        if is_needed and getattr(query, side) is None:
            remedy = f"set weights.{side} to 0" + (
                "" if side == "colbert" else f" and candidates.{side} to 0"
            )
            raise InvalidRequestError(f"{param}.{side} is missing: give it, or {remedy}", f"{param}.{side}")
