"""From requested weights to the weights of the sum."""

from __future__ import annotations

from index.candidates import Weights
from index.fusion import weights_preset
from service.exceptions import InvalidRequestError
from service.schemas.search import PresetName, WeightsRequest


def weights_of(requested: WeightsRequest | PresetName) -> Weights:
    """A preset's weights, or those given. Raises InvalidRequestError where all are 0."""
    if isinstance(requested, str):
        return weights_preset(requested)
    weights = Weights(
        *(1.0 if w is None else w for w in (requested.dense, requested.sparse, requested.colbert))
    )
    if not (weights.dense or weights.sparse or weights.colbert):
        raise InvalidRequestError("weights are all 0, so nothing would be scored; raise one", "weights")
    return weights
