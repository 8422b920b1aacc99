"""jina-embeddings-v3 as its authors lay it out, unpacked, against weights that are put together by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.nn import functional
from transformers import AutoModel

from tercet.models.encoder import encode
from tercet.models.errors import CheckpointError
from tercet.models.loader import load_encoder
from tercet.models.representations import InputType
from tercet.models.task_slices import unpack_tasks
from tests.tiny.families import FAMILIES
from tests.tiny.family import write

JINA = next(family for family in FAMILIES if family.name == "jina-embeddings-v3")
TASKS = ("retrieval.query", "retrieval.passage", "text-matching")
RANK, ALPHA = 2, 3
TEXTS = ["hot tea", "the train leaves the green station", ""]
OF_LAYER = {
    "self_attn.o_proj": "mixer.out_proj",
    "mlp.fc1": "mlp.fc1",
    "mlp.fc2": "mlp.fc2",
    "post_attention_layernorm": "norm1",
    "post_mlp_layernorm": "norm2",
}


def write_original(folder: Path, source: Path) -> None:
    """The tiny checkpoint in the authors' layout, with random slices for each task."""
    state = AutoModel.from_pretrained(source).state_dict()
    config = json.loads((source / "config.json").read_text())
    layers = config["num_hidden_layers"]
    plain: dict[str, Any] = {}
    for part in ("weight", "bias"):
        plain[f"emb_ln.{part}"] = state[f"embeddings.LayerNorm.{part}"]
        for layer in range(layers):
            heads = [state[f"layers.{layer}.self_attn.{one}_proj.{part}"] for one in "qkv"]
            plain[f"encoder.layers.{layer}.mixer.Wqkv.{part}"] = torch.cat(heads)
            for own, name in OF_LAYER.items():
                plain[f"encoder.layers.{layer}.{name}.{part}"] = state[f"layers.{layer}.{own}.{part}"]
    for name in ("word_embeddings", "token_type_embeddings"):
        plain[f"embeddings.{name}.weight"] = state[f"embeddings.{name}.weight"]
    plain["pooler.dense.weight"] = torch.randn(4, 4)
    generator = torch.Generator().manual_seed(0)
    written: dict[str, Any] = {}
    for name, weight in plain.items():
        layer, _, part = name.rpartition(".")
        if part == "bias" or "norm" in name or "_ln" in name:
            written[f"roberta.{name}"] = weight.clone()
            continue
        out, wide = weight.shape
        shapes = [(RANK, wide), (out, RANK)] if "_embeddings" not in name else [(out, RANK), (RANK, wide)]
        at = f"roberta.{layer}.parametrizations.weight"
        written[f"{at}.original"] = weight.clone()
        for half, shape in zip("AB", shapes, strict=True):
            written[f"{at}.0.lora_{half}"] = 0.3 * torch.randn(len(TASKS), *shape, generator=generator)
    folder.mkdir()
    save_file(written, folder / "model.safetensors")
    own = {
        "model_type": "xlm-roberta",
        "auto_map": {"AutoModel": "jinaai/somewhere--modeling_lora.XLMRobertaLoRA"},
        "position_embedding_type": "rotary",
        "emb_pooler": "mean",
        "rotary_emb_base": config["rope_parameters"]["rope_theta"],
        "lora_adaptations": TASKS,
        "lora_rank": RANK,
        "lora_alpha": ALPHA,
        "task_instructions": {"retrieval.query": "hot ", "retrieval.passage": "green ", "text-matching": ""},
    }
    kept = {key: value for key, value in config.items() if key not in ("rope_parameters", "architectures")}
    (folder / "config.json").write_text(json.dumps({**kept, **own}))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_bytes((source / name).read_bytes())


@pytest.fixture
def original(made_once: Callable[[str, Callable[[Path], object]], Path], tmp_path: Path) -> Path:
    source = made_once("checkpoints/jina-body", lambda folder: write(JINA, folder))
    write_original(tmp_path / "original", source)
    return tmp_path / "original"


def merged(original: Path, source: Path, task: int) -> Any:
    """The body of one task, its weights W + α/r · B·A."""
    written = load_file(original / "model.safetensors")
    weights: dict[str, Any] = {}
    for name, tensor in written.items():
        layer, mark, part = name.removeprefix("roberta.").partition(".parametrizations.weight.")
        if not mark:
            weights[layer] = tensor
        elif part == "original":
            a, b = (written[name.replace("original", f"0.lora_{half}")][task] for half in "AB")
            product = a @ b if "_embeddings" in name else b @ a
            weights[f"{layer}.weight"] = tensor + ALPHA / RANK * product
    body = AutoModel.from_pretrained(source).eval()
    state = {
        f"embeddings.{name}.weight": weights[f"embeddings.{name}.weight"]
        for name in ("word_embeddings", "token_type_embeddings")
    }
    for part in ("weight", "bias"):
        state[f"embeddings.LayerNorm.{part}"] = weights[f"emb_ln.{part}"]
        for layer in range(body.config.num_hidden_layers):
            fused = weights[f"encoder.layers.{layer}.mixer.Wqkv.{part}"].chunk(3)
            for one, rows in zip("qkv", fused, strict=True):
                state[f"layers.{layer}.self_attn.{one}_proj.{part}"] = rows
            for own, name in OF_LAYER.items():
                state[f"layers.{layer}.{own}.{part}"] = weights[f"encoder.layers.{layer}.{name}.{part}"]
    body.load_state_dict(state, strict=False)
    return body


@pytest.mark.slow
def test_an_unpacked_checkpoint_has_the_vectors_of_each_task(
    original: Path, tmp_path: Path, made_once: Callable[[str, Callable[[Path], object]], Path]
) -> None:
    assert unpack_tasks(original, tmp_path / "unpacked") == [
        "retrieval_query",
        "retrieval_passage",
        "text_matching",
    ]
    encoder = load_encoder(str(tmp_path / "unpacked"), "torch", device="cpu")
    settings = encoder.tokenizer.settings
    assert (settings.query_instruction, settings.document_instruction) == ("hot ", "green ")
    source = made_once("checkpoints/jina-body", lambda folder: write(JINA, folder))
    kinds: tuple[InputType, ...] = ("query", "document")
    for task, kind in enumerate(kinds):
        body = merged(original, source, task)
        found = encode(encoder, TEXTS, kind).dense
        assert found is not None
        for text, vector in zip(TEXTS, found, strict=True):
            ids = encoder.tokenizer.tokenize([text], kind).token_ids.tolist()
            with torch.no_grad():
                states = body(torch.tensor([ids])).last_hidden_state[0]
            expected = functional.normalize(states.mean(0), dim=-1).numpy()
            np.testing.assert_allclose(vector, expected, atol=1e-5)


def test_what_is_no_such_checkpoint_is_refused(original: Path, tmp_path: Path) -> None:
    path = original / "config.json"
    config = json.loads(path.read_text())
    for changes, message in (
        ({"lora_adaptations": None}, "has no lora_adaptations"),
        ({"lora_adaptations": ["../a"]}, "tasks need names"),
        ({"lora_rank": None}, "has no numbers lora_rank and lora_alpha"),
        ({"lora_adaptations": ["one", "two"]}, "is no slices of 2 tasks"),
        ({"position_embedding_type": "absolute"}, "{'position_embedding_type': 'absolute'}"),
    ):
        path.write_text(json.dumps({**config, **changes}))
        with pytest.raises(CheckpointError, match=message):
            unpack_tasks(original, tmp_path / "unpacked")
        assert not (tmp_path / "unpacked").exists()
    with pytest.raises(CheckpointError, match="exists; name a new folder"):
        unpack_tasks(original, original)
