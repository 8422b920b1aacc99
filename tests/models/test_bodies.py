"""Which bodies are read, and that others are refused by name in one line."""

import json
from pathlib import Path
from typing import Any

import pytest

from tercet.models.bodies import attention_of, body_config
from tercet.models.errors import CheckpointError
from tercet.models.loader import load_encoder

GTE: dict[str, Any] = {
    "model_type": "new",
    "hidden_size": 32,
    "num_attention_heads": 4,
    "num_hidden_layers": 1,
}


def config_of(folder: Path, **values: Any) -> Any:
    (folder / "config.json").write_text(json.dumps(values))
    return body_config(folder)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"model_type": "made-up"}, r"has no model_type 'made-up'; take another"),
        (
            {"model_type": "made-up", "auto_map": {"AutoModel": "modeling.Made"}},
            "made-up'; it comes with code of its own, which is not run",
        ),
        ({"model_type": 7}, "no model_type 7"),
        ({}, "no model_type None"),
        ({"model_type": "t5"}, "'t5' has an encoder and a decoder"),
        (
            {"model_type": "bert", "position_embedding_type": "alibi"},
            "'bert' with position_embedding_type 'alibi' is not read here",
        ),
        (
            {"model_type": "xlm-roberta", "position_embedding_type": "rotary", "lora_adaptations": ["a"]},
            "jina-embeddings-v3 with its adapters.*tercet checkpoints unpack-tasks",
        ),
        ({**GTE, "position_embedding_type": "absolute"}, "GTE with position_embedding_type 'absolute'"),
        ({**GTE, "logn_attention_scale": True}, "GTE with logn_attention_scale True is not read here"),
        ({**GTE, "rope_scaling": {"type": "dynamic", "factor": 2}}, "GTE with rope_scaling"),
        ({**GTE, "rope_scaling": {"type": "ntk", "factor": 2, "mixed_b": 1}}, "GTE with rope_scaling"),
        ({**GTE, "rope_scaling": {"type": "ntk"}}, r"config\.json is not understood: 'factor'"),
        ({**GTE, "rope_scaling": ["ntk"]}, r"config\.json is not understood"),
        ({**GTE, "num_attention_heads": 0, "rope_scaling": {"type": "ntk", "factor": 2}}, "not understood"),
        ({"model_type": "bert", "num_hidden_layers": "many"}, r"config\.json is not understood"),
    ],
)
def test_what_is_not_read_is_named(tmp_path: Path, values: Any, message: str) -> None:
    with pytest.raises(CheckpointError, match=message) as error:
        config_of(tmp_path, **values)
    assert "\n" not in str(error.value)


def test_the_rotation_of_gte(tmp_path: Path) -> None:
    """As in gte-base-en-v1.5, whose width is 768 and factor 2; and without scaling."""
    config = config_of(
        tmp_path,
        **{**GTE, "hidden_size": 768, "num_attention_heads": 12},
        rope_theta=500_000,
        rope_scaling={"factor": 2.0, "type": "ntk"},
        type_vocab_size=0,
    )
    assert config.rope_parameters["rope_theta"] == 1_000_000
    assert config.rope_parameters["factor"] == pytest.approx(2 ** (2 / 64))
    assert (config.type_vocab_size, config.model_type) == (0, "gte")
    plain = config_of(tmp_path, **GTE, rope_theta=160_000, rope_scaling=None)
    assert plain.rope_parameters["rope_type"] == "default"
    assert plain.rope_parameters["rope_theta"] == 160_000


def test_attention_is_fused_where_the_body_has_that(tmp_path: Path) -> None:
    assert attention_of(config_of(tmp_path, model_type="bert")) == "sdpa"
    assert attention_of(config_of(tmp_path, model_type="mpnet")) == "eager"


def test_no_text_is_continued(tmp_path: Path) -> None:
    assert config_of(tmp_path, model_type="qwen3").use_cache is False


def test_a_body_without_a_mask_is_refused(tmp_path: Path, tokenizer_json: bytes) -> None:
    """Fourier transforms mix all tokens, those of padding too: a text would depend on those beside it."""
    from transformers import FNetConfig, FNetModel

    config = FNetConfig(
        vocab_size=71,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=1,
        max_position_embeddings=64,
        initializer_range=0.15,
    )
    FNetModel(config).save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_bytes(tokenizer_json)
    with pytest.raises(CheckpointError, match="states of FNetModel change with the padding of a batch"):
        load_encoder(str(tmp_path), "torch", device="cpu")


def test_a_body_with_a_decoder_is_told_as_one(tmp_path: Path, tokenizer_json: bytes) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "t5", "d_model": 32}))
    (tmp_path / "tokenizer.json").write_bytes(tokenizer_json)
    with pytest.raises(CheckpointError, match="'t5' has an encoder and a decoder"):
        load_encoder(str(tmp_path), "torch", device="cpu")


def test_a_body_that_sees_a_little_of_the_padding_is_refused(tmp_path: Path, tokenizer_json: bytes) -> None:
    """ConvBERT's convolutions reach beyond a text's last token, which its attention does not."""
    import torch
    from transformers import ConvBertConfig, ConvBertModel

    config = ConvBertConfig(
        vocab_size=71,
        hidden_size=32,
        embedding_size=32,
        intermediate_size=48,
        num_hidden_layers=1,
        num_attention_heads=4,
        max_position_embeddings=64,
    )
    torch.manual_seed(1)
    ConvBertModel(config).save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_bytes(tokenizer_json)
    with pytest.raises(CheckpointError, match="states of ConvBertModel change with the padding of a batch"):
        load_encoder(str(tmp_path), "torch", device="cpu")


def test_a_body_of_something_else_than_text_is_refused(tmp_path: Path, tokenizer_json: bytes) -> None:
    from transformers import ViTConfig, ViTModel

    config = ViTConfig(
        hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=4, image_size=32
    )
    ViTModel(config).save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_bytes(tokenizer_json)
    with pytest.raises(CheckpointError, match="ViTModel does not take the tokens of a short text"):
        load_encoder(str(tmp_path), "torch", device="cpu")
