"""Ready representations of a query, checked against the encoder and against what the search needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tercet.index.candidates import CandidateLimits, Weights
from tercet.index.catalog.settings import CollectionSettings
from tercet.models.encoder import EncoderInfo
from tercet.models.representations import Float32, Representations
from tercet.service.encoding.ready_representations import ready_text
from tercet.service.exceptions import InvalidRequestError


@dataclass(frozen=True, slots=True)
class ReadyQuery:
    """Representations of one query as they came, before it is known which encoder is to have made them.

    Lists or arrays of finite numbers; sparse is token ids and weights. Vectors may have any length, as means
    of several texts' have: that changes no order within a side.
    """

    dense: Sequence[float] | Float32 | None = None
    sparse: tuple[Sequence[int], Sequence[float]] | None = None
    colbert: Sequence[Sequence[float]] | Float32 | None = None

    def checked(self, info: EncoderInfo, param: str = "query") -> Representations:
        """The representations, which `param` names in messages.

        Raises InvalidRequestError that names the side whose shape or ids do not fit the encoder.
        """
        if self.colbert is not None and len(self.colbert) > info.max_length:
            raise InvalidRequestError(
                f"{param}.colbert has {len(self.colbert)} vectors; {info.name} makes at most "
                f"{info.max_length}",
                f"{param}.colbert",
            )
        return ready_text(self.dense, self.sparse, self.colbert, info, param, unit=False)


def require_sides(
    query: Representations,
    text: str | None,
    weights: Weights,
    candidates: CandidateLimits,
    settings: CollectionSettings,
    param: str = "query",
) -> None:
    """Raises InvalidRequestError for a side of the collection's encoder that is missing, but has a weight or
    proposes candidates.
    """
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
        if is_needed and side in settings.encoder_sides and getattr(query, side) is None:
            remedy = f"set weights.{side} to 0" + (
                "" if side == "colbert" else f" and candidates.{side} to 0"
            )
            raise InvalidRequestError(f"{param}.{side} is missing: give it, or {remedy}", f"{param}.{side}")
