"""Tiny random bodies of every family, with random heads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="these tests need torch: install tercet[torch]")
pytest.importorskip("transformers", reason="these tests need transformers: install tercet[torch]")

VOCABULARY = 66  # of the tiny WordPiece vocabulary
SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 80,
    "pad_token_id": 0,
    "bos_token_id": 2,
    "eos_token_id": 3,
    "initializer_range": 0.2,
}
OWN: dict[str, dict[str, Any]] = {
    "distilbert": {"dim": 32, "n_layers": 3, "n_heads": 4, "hidden_dim": 64},
    "eurobert": {"num_key_value_heads": 2, "mask_token_id": 4},
    # Windows of 3 tokens to each side, far less than the texts of the tests.
    "gemma3_text": {
        "num_key_value_heads": 2,
        "head_dim": 8,
        "sliding_window": 4,
        "use_bidirectional_attention": True,
        "query_pre_attn_scalar": 8,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
    },
    "mistral": {"num_key_value_heads": 2, "sliding_window": 4},
    "modernbert": {
        "local_attention": 6,
        "global_attn_every_n_layers": 2,
        "cls_token_id": 2,
        "sep_token_id": 3,
    },
    "qwen2": {"num_key_value_heads": 2},
    "qwen3": {"num_key_value_heads": 2, "head_dim": 8},
    "xlm-roberta": {"pad_token_id": 1},
}


@pytest.fixture(scope="session")
def model_of() -> Callable[..., Any]:
    """Makes an `EncoderModel` of a family, with all three sides unless settings say otherwise."""
    from transformers import AutoConfig, AutoModel

    from tercet.models.checkpoint import EncodingSettings
    from tercet.models.encoder_model import EncoderModel
    from tercet.models.heads import Heads

    def make(family: str, **settings: Any) -> EncoderModel:
        torch.manual_seed(5)
        config = AutoConfig.for_model(family, **{**SIZES, **OWN.get(family, {})})
        body = AutoModel.from_config(config, attn_implementation="sdpa")
        if getattr(body, "pooler", None) is not None:
            body.pooler = None
        heads = Heads(32, 16, EncodingSettings(max_length=64, **settings))
        return EncoderModel(body, heads).eval()

    return make


class HostRecorder:
    """Records what runs again on a CPU: it reads the same inputs and writes the same outputs, as a CUDA graph
    does.
    """

    def __init__(self) -> None:
        self.recorded = 0

    def __call__(self, run: Any, inputs: Sequence[Any]) -> tuple[Mapping[str, Any], Callable[[], None]]:
        self.recorded += 1
        outputs = run(inputs)

        def replay() -> None:
            for name, tensor in run(inputs).items():
                outputs[name].copy_(tensor)

        return outputs, replay


@pytest.fixture(scope="session")
def host_recorder() -> type[HostRecorder]:
    """The recorder for CPUs."""
    return HostRecorder
