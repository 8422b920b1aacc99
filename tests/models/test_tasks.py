"""Adapters by task in a checkpoint's own folders, against PEFT's, which wrote them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer as Library
from torch.nn import functional
from transformers import AutoModel

from tercet.models.checkpoint import EncodingSettings, read_settings
from tercet.models.encoder import Encoder, encode, encode_tokens
from tercet.models.errors import CheckpointError, UnsupportedError
from tercet.models.export_onnx import export
from tercet.models.loader import load_encoder
from tercet.models.representations import Float32, InputType, TokenBatch
from tests.tiny.families import FAMILIES
from tests.tiny.family import write

peft = pytest.importorskip("peft", reason="PEFT writes the adapters: install tercet[train]")

JINA = next(family for family in FAMILIES if family.name == "jina-embeddings-v3")
TASKS = ("classification", "retrieval_passage", "retrieval_query", "separation", "text_matching")
TEXTS = ["hot tea", "the train leaves the green station", "tea " * 200, ""]
KINDS: tuple[InputType, ...] = ("query", "document")
USUAL = {"query": "retrieval_query", "document": "retrieval_passage"}
ONE = {"query": "text_matching", "document": "text_matching"}
PROMPTS = {"retrieval.query": "hot query: ", "retrieval.passage": "green: ", "text-matching": "a "}
TOLERANCE = 1e-5
MadeOnce = Callable[[str, Callable[[Path], object]], Path]
pytestmark = pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")


def write_jina(folder: Path) -> Path:
    """The tiny jina-embeddings-v3 with an adapter for each task, of its linear layers and embeddings."""
    write(JINA, folder)
    for seed, task in enumerate(TASKS):
        torch.manual_seed(seed)
        config = peft.LoraConfig(
            r=4,
            lora_alpha=6,
            target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "fc1", "fc2", "word_embeddings"],
        )
        model = peft.get_peft_model(AutoModel.from_pretrained(folder), config)
        with torch.no_grad():
            for name, values in model.named_parameters():
                if "lora_" in name:
                    values.normal_(0, 0.2)
        model.save_pretrained(folder / task)
    return folder


@pytest.fixture
def jina(made_once: MadeOnce, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made_once("checkpoints/jina-with-tasks", write_jina), tmp_path / "jina"))


def by_peft(folder: Path, task: str | None, text: str, prompt: str = "") -> Float32:
    """The dense vector of one text by transformers and PEFT."""
    body = AutoModel.from_pretrained(folder).eval()
    if task is not None:
        body.load_adapter(str(folder), adapter_name=task, adapter_kwargs={"subfolder": task})
        body.set_adapter(task)
    library = Library.from_file(str(folder / "tokenizer.json"))
    ids = library.encode(prompt + text).ids
    ids = ids if len(ids) <= 96 else [*ids[:95], ids[-1]]
    with torch.no_grad():
        hidden = body(torch.tensor([ids])).last_hidden_state[0]
    found: Float32 = functional.normalize(hidden.mean(0), dim=-1).numpy()
    return found


def expected(folder: Path, tasks: dict[str, str], kind: InputType) -> Float32:
    return np.stack([by_peft(folder, tasks[kind], text) for text in TEXTS])


def dense(encoder: Encoder, kind: InputType) -> Float32:
    found = encode(encoder, TEXTS, kind).dense
    assert found is not None
    return found


def say(folder: Path, **values: Any) -> Path:
    (folder / "tercet.json").write_text(json.dumps(values))
    return folder


def opened(folder: Path) -> Encoder:
    return load_encoder(str(folder), "torch", device="cpu")


@pytest.mark.slow
def test_queries_and_documents_go_through_their_adapters(jina: Path) -> None:
    encoder = opened(jina)
    settings = encoder.tokenizer.settings
    assert settings.tasks is not None
    assert settings.tasks.to_json() == USUAL
    assert EncodingSettings.from_json(settings.to_json()) == settings
    for kind in KINDS:
        np.testing.assert_allclose(dense(encoder, kind), expected(jina, USUAL, kind), atol=TOLERANCE)
    assert np.abs(dense(encoder, "query") - dense(encoder, "document")).max() > 0.1


def test_one_batch_may_hold_both(jina: Path) -> None:
    encoder = opened(jina)
    both = TokenBatch.concatenate([encoder.tokenizer.tokenize(TEXTS, kind) for kind in KINDS])
    wanted = np.concatenate([dense(encoder, kind) for kind in KINDS])
    np.testing.assert_allclose(encode_tokens(encoder, both).dense, wanted, atol=TOLERANCE)


@pytest.mark.slow
def test_one_task_for_both_and_its_graph(jina: Path, tmp_path: Path) -> None:
    encoder = opened(say(jina, tasks=ONE))
    wanted = expected(jina, ONE, "query")
    exported = tmp_path / "exported"
    export(jina, exported, int8=False)
    graph = load_encoder(str(exported), device="cpu")
    assert graph.info.fingerprint == encoder.info.fingerprint
    for each in (encoder, graph):
        np.testing.assert_allclose(dense(each, "query"), wanted, atol=TOLERANCE)
        np.testing.assert_array_equal(dense(each, "document"), dense(each, "query"))


def test_none_is_the_body_alone(jina: Path) -> None:
    encoder = opened(say(jina, tasks=None))
    wanted = np.stack([by_peft(jina, None, text) for text in TEXTS])
    np.testing.assert_allclose(dense(encoder, "query"), wanted, atol=TOLERANCE)


def test_each_choice_and_each_adapter_is_in_the_fingerprint(jina: Path) -> None:
    choices = (USUAL, ONE, None, {**USUAL, "query": "separation"})
    found = [opened(say(jina, tasks=tasks)).info.fingerprint for tasks in choices]
    (jina / "tercet.json").unlink()
    path = jina / "retrieval_query" / "adapter_model.safetensors"
    save_file({name: values * 2 for name, values in load_file(path).items()}, path)
    found.append(opened(jina).info.fingerprint)
    assert len(set(found)) == len(found)


def test_a_task_brings_its_prompt(jina: Path) -> None:
    path = jina / "config_sentence_transformers.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "prompts": PROMPTS}))
    settings = read_settings(jina)
    assert (settings.query_instruction, settings.document_instruction) == ("hot query: ", "green: ")
    assert read_settings(say(jina, tasks=ONE)).document_instruction == "a "
    (jina / "tercet.json").unlink()
    wanted = by_peft(jina, "retrieval_query", "hot tea", "hot query: ")
    np.testing.assert_allclose(dense(opened(jina), "query")[0], wanted, atol=TOLERANCE)


@pytest.mark.slow
def test_two_tasks_have_no_graph(jina: Path, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="an adapter for queries and another for documents"):
        export(jina, tmp_path / "exported", int8=False)
    for tasks in (ONE, None):
        say(jina, tasks=tasks)
        with pytest.raises(UnsupportedError, match="give another output"):
            export(jina, jina, int8=False)
    export(jina, tmp_path / "exported", int8=False)
    shutil.copytree(tmp_path / "exported" / "onnx", jina / "onnx")
    (jina / "tercet.json").unlink()
    with pytest.raises(UnsupportedError, match="the adapters of its tasks are in no graph"):
        load_encoder(str(jina), device="cpu")


def changed(folder: Path, **values: Any) -> None:
    path = folder / "retrieval_query" / "adapter_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def renamed(folder: Path, old: str, new: str) -> None:
    path = folder / "retrieval_query" / "adapter_model.safetensors"
    save_file({name.replace(old, new): values for name, values in load_file(path).items()}, path)


def cut(folder: Path) -> None:
    path = folder / "retrieval_query" / "adapter_model.safetensors"
    weights = load_file(path)
    name = next(name for name in weights if "fc1.lora_A" in name)
    save_file({**weights, name: weights[name][:, 1:].contiguous()}, path)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: changed(f, peft_type="IA3"), "peft_type 'IA3' is not read here"),
        (lambda f: changed(f, use_dora=True), "use_dora True is not read here"),
        (lambda f: changed(f, rank_pattern={"fc1": 8}), "rank_pattern .* is not read here"),
        (lambda f: changed(f, r="4"), "r is '4'"),
        (lambda f: renamed(f, "fc1", "mixer.Wqkv"), "has no layer layers.0.mlp.mixer.Wqkv"),
        (lambda f: renamed(f, "lora_B", "lora_magnitude"), "LoRA of shapes"),
        (cut, r"LoRA of shapes \[\[4, 31\], \[48, 4\]\] for weights \[48, 32\]"),
        (lambda f: (f / "retrieval_query" / "adapter_model.safetensors").unlink(), "model.safetensors"),
        (lambda f: say(f, tasks={"query": "separation"}), "must be an object with a task for query"),
        (lambda f: say(f, tasks={**USUAL, "query": "law"}), "names 'law', but there are adapters for"),
        (lambda f: say(f, tasks={**USUAL, "query": 3}), "it must name a task's folder"),
    ],
)
def test_what_is_not_read_is_named(jina: Path, damage: Callable[[Path], object], message: str) -> None:
    damage(jina)
    with pytest.raises(CheckpointError, match=message):
        opened(jina)
