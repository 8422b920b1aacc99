"""What mteb writes beside its results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from mteb.models import ModelMeta
from tercet_client.types import InfoResponse


def model_meta(
    info: InfoResponse,
    kind: Literal["dense", "hybrid"],
    settings: Mapping[str, Any],
    adapter: str | None = None,
) -> ModelMeta:
    """Names the server's encoder, and by the revision its fingerprint: other weights are another model.

    settings: what else results depend on.
    """
    encoder = info["encoder"]
    name = encoder["name"] if adapter is None else f"{encoder['name']}-{adapter}"
    return ModelMeta(
        loader=None,
        name=f"tercet/{name}" if kind == "dense" else f"tercet/{name}-{kind}",
        revision=encoder["fingerprint"],
        release_date=None,
        languages=None,
        n_parameters=None,
        memory_usage_mb=None,
        max_tokens=encoder["max_length"],
        embed_dim=encoder["dense_dimension"],
        license=None,
        open_weights=None,
        public_training_code=None,
        public_training_data=None,
        framework=["API"],
        similarity_fn_name="cosine",  # type: ignore[arg-type]
        use_instructions=False,
        training_datasets=None,
        model_type=[kind],
        experiment_kwargs={key: value for key, value in settings.items() if value is not None} or None,
    )
