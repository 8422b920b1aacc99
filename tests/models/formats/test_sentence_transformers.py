"""Folders of sentence-transformers: what their files say is what their vectors are made by."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tercet.models.checkpoint import read_settings
from tercet.models.encoder import encode
from tercet.models.errors import CheckpointError
from tercet.models.formats.sentence_transformers import settings_of_modules, similarity_lost
from tercet.models.loader import load_encoder

TYPE = "sentence_transformers.models.{}"
NEW_TYPE = "sentence_transformers.sentence_transformer.modules.{0}.{1}"
MODULES = [
    {"idx": 0, "name": "0", "path": "", "type": TYPE.format("Transformer")},
    {"idx": 1, "name": "1", "path": "1_Pooling", "type": TYPE.format("Pooling")},
    {"idx": 2, "name": "2", "path": "2_Normalize", "type": TYPE.format("Normalize")},
]


def write(folder: Path, pooling: Any, modules: Any = MODULES, **files: Any) -> Path:
    """Writes what sentence-transformers would beside a transformer. files: others, by their stems."""
    (folder / "1_Pooling").mkdir(exist_ok=True, parents=True)
    contents = {"modules": modules, "1_Pooling/config": pooling, **files}
    for stem, content in contents.items():
        (folder / f"{stem}.json").write_text(json.dumps(content))
    return folder


@pytest.mark.parametrize(
    ("pooling", "expected"),
    [
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "cls"),
        ({"pooling_mode_mean_tokens": True}, "mean"),
        ({"pooling_mode_mean_sqrt_len_tokens": True}, "mean"),
        ({"pooling_mode_lasttoken": True}, "last"),
        ({"word_embedding_dimension": 32}, "mean"),
        ({"pooling_mode": "cls", "embedding_dimension": 32}, "cls"),
        ({"pooling_mode": ["lasttoken"]}, "last"),
    ],
)
def test_how_states_are_pooled(tmp_path: Path, pooling: Any, expected: str) -> None:
    assert settings_of_modules(write(tmp_path, pooling)) == {"pooling": expected}


@pytest.mark.parametrize(
    ("config", "query", "document"),
    [
        ({"prompts": {"query": "query: ", "document": "passage: "}}, "query: ", "passage: "),
        ({"prompts": {"query": "", "passage": "p: ", "corpus": "c: "}}, "", "p: "),
        ({"prompts": {"any": "a: "}, "default_prompt_name": "any"}, "a: ", "a: "),
        ({"prompts": {"query": "q: ", "any": "a: "}, "default_prompt_name": "any"}, "q: ", "a: "),
        ({"prompts": {"query": "q: ", "any": "a: "}, "default_prompt_name": None}, "q: ", ""),
        ({"prompts": {"query": "q: "}, "default_prompt_name": "query"}, "q: ", ""),
        ({"prompts": {"document": "d: "}, "default_prompt_name": "document"}, "", "d: "),
        ({"prompts": {}}, "", ""),
    ],
)
def test_which_prompts_stand_before_texts(tmp_path: Path, config: Any, query: str, document: str) -> None:
    found = settings_of_modules(
        write(tmp_path, {"pooling_mode": "mean"}, config_sentence_transformers=config)
    )
    assert found.get("query_instruction", "") == query
    assert found.get("document_instruction", "") == document


def test_the_folder_is_encoded_as_it_says(bert_copy: Path) -> None:
    """CLS, a prompt before queries, no more than 12 tokens; no heads, and so dense alone."""
    (bert_copy / "heads.safetensors").unlink()
    (bert_copy / "tercet.json").unlink()
    write(
        bert_copy,
        {"pooling_mode": "cls"},
        sentence_bert_config={"max_seq_length": 12, "do_lower_case": False},
        config_sentence_transformers={"prompts": {"query": "find the "}},
    )
    encoder = load_encoder(str(bert_copy), "torch", device="cpu")
    assert encoder.info.sides == ("dense",)
    assert (encoder.info.pooling, encoder.info.max_length) == ("cls", 12)
    query, document = (encode(encoder, ["hot water"], kind).dense for kind in ("query", "document"))
    plain = encode(encoder, ["find the hot water"]).dense
    assert query is not None
    np.testing.assert_array_equal(query, plain)
    assert not np.array_equal(query, document)


def test_our_own_settings_come_first(bert_copy: Path) -> None:
    write(bert_copy, {"pooling_mode": "cls"}, sentence_bert_config={"max_seq_length": 12})
    (bert_copy / "tercet.json").write_text(json.dumps({"pooling": "mean"}))
    settings = read_settings(bert_copy)
    assert (settings.pooling, settings.max_length) == ("mean", 12)


def test_a_limit_beyond_the_positions_is_the_positions(bert_copy: Path) -> None:
    write(bert_copy, {"pooling_mode": "mean"}, sentence_bert_config={"max_seq_length": 9999})
    assert read_settings(bert_copy).max_length == 48


@pytest.mark.parametrize(
    ("pooling", "files", "message"),
    [
        ({"pooling_mode": "max"}, {}, "pooling 'max' is not read here"),
        ({"pooling_mode": ["cls", "mean"]}, {}, r"pooling \['cls', 'mean'\] is not read here"),
        ({"pooling_mode_weightedmean_tokens": True}, {}, r"pooling \['weightedmean'\] is not read"),
        (
            {"pooling_mode": "mean", "include_prompt": False},
            {"config_sentence_transformers": {"prompts": {"query": "q: "}}},
            "include_prompt is false",
        ),
        ({"pooling_mode": 7}, {}, "pooling 7 is not read here"),
        ({"pooling_mode": [["cls"]]}, {}, r"pooling \[\['cls'\]\] is not read here"),
        (
            {"pooling_mode": "mean"},
            {"config_sentence_transformers": {"prompts": ["q: "]}},
            r"prompts is \['q: '\]; an object of texts by name",
        ),
        (
            {"pooling_mode": "mean"},
            {"config_sentence_transformers": {"prompts": {"query": 7}}},
            r"prompts is \{'query': 7\}",
        ),
        ({"pooling_mode": "mean"}, {"sentence_bert_config": {"do_lower_case": True}}, "do_lower_case"),
        ({"pooling_mode": "mean"}, {"config_sentence_transformers": []}, "a JSON object is expected"),
        (
            {"pooling_mode": "mean"},
            {"modules": [*MODULES[:2], {"path": "2_LayerNorm", "type": TYPE.format("LayerNorm")}]},
            r"modules\.json: sentence_transformers\.models\.LayerNorm is not read here",
        ),
        (
            {"pooling_mode": "mean"},
            {"modules": [*MODULES, {"path": "3_Dense", "type": TYPE.format("Dense")}]},
            "Transformer and Pooling and Normalize and Dense is not read here",
        ),
        (
            {"pooling_mode": "mean_sqrt_len_tokens"},
            {"modules": [*MODULES[:2], {"path": "2_Dense", "type": TYPE.format("Dense")}]},
            "mean_sqrt_len_tokens before a Dense",
        ),
        ({"pooling_mode": "mean"}, {"modules": MODULES[:1]}, "Transformer is not read here"),
        ({"pooling_mode": "mean"}, {"modules": []}, "no module is not read here"),
        (
            {"pooling_mode": "mean"},
            {"modules": [*MODULES[:2], {**MODULES[1], "path": "2_Pooling"}]},
            "Transformer and Pooling and Pooling is not read here",
        ),
        (
            {"pooling_mode": "mean"},
            {"modules": [MODULES[0], {**MODULES[1], "path": "pool"}]},
            r"pool/config\.json is missing, though modules\.json names its folder",
        ),
        ({"pooling_mode": "mean"}, {"modules": {"0": MODULES[0]}}, "must list modules"),
        (
            {"pooling_mode": "mean"},
            {"modules": [{**MODULES[0], "path": "0_Transformer"}, MODULES[1]]},
            "the transformer lies in 0_Transformer",
        ),
    ],
)
def test_what_is_not_read_is_named(tmp_path: Path, pooling: Any, files: Any, message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        settings_of_modules(write(tmp_path, pooling, **files))


def test_types_of_newer_releases(tmp_path: Path) -> None:
    names = ("Transformer", "Pooling", "Normalize")
    modules = [
        {**module, "type": NEW_TYPE.format(name.lower(), name)}
        for module, name in zip(MODULES, names, strict=True)
    ]
    assert settings_of_modules(write(tmp_path, {"pooling_mode": "cls"}, modules)) == {"pooling": "cls"}


def test_a_causal_body_with_the_first_state_is_refused(tmp_path: Path, bert: Path) -> None:
    """It would give all texts one vector; with the last state it is taken."""
    from transformers import Qwen3Config, Qwen3Model

    torch.manual_seed(4)
    config = Qwen3Config(
        vocab_size=200,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=64,
    )
    folder = tmp_path / "causal"
    Qwen3Model(config).save_pretrained(folder)
    (folder / "tokenizer.json").write_bytes((bert / "tokenizer.json").read_bytes())
    (folder / "tercet.json").write_text('{"pooling": "cls"}')
    with pytest.raises(CheckpointError, match=r'of this body see none that follow.*"pooling": "last"'):
        load_encoder(str(folder), "torch", device="cpu")
    (folder / "tercet.json").write_text('{"pooling": "last"}')
    encoder = load_encoder(str(folder), "torch", device="cpu")
    together, alone = encode(encoder, ["hot water", "the green tea leaf"]), encode(encoder, ["hot water"])
    assert together.dense is not None
    assert alone.dense is not None
    np.testing.assert_allclose(together.dense[:1], alone.dense, atol=1e-6)
    assert abs(float(together.dense[0] @ together.dense[1])) < 0.999


def test_sizes_to_cut_to(tmp_path: Path) -> None:
    folder = write(tmp_path, {}, config_sentence_transformers={"matryoshka_dims": [32, 16]})
    assert settings_of_modules(folder)["matryoshka_dimensions"] == [32, 16]


def test_a_similarity_that_depends_on_lengths(tmp_path: Path) -> None:
    plain = {"modules": MODULES[:2]}
    for named, files, expected in (
        ("dot", plain, "dot"),
        ("euclidean", plain, "euclidean"),
        ("cosine", plain, None),
        ("dot", {"modules": MODULES}, None),
    ):
        write(tmp_path, {}, config_sentence_transformers={"similarity_fn_name": named}, **files)
        assert similarity_lost(tmp_path) == expected
