"""Encoders of ColBERT's kind, in the layouts of PyLate, sentence-transformers and Stanford, against their
definitions written out in plain torch, one text at a time.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from tercet.models.checkpoint import EncodingSettings, read_settings
from tercet.models.encoder import Encoder, Engine, encode, encode_tokens
from tercet.models.errors import UnsupportedError
from tercet.models.loader import load_encoder
from tercet.models.representations import Float32, InputType, Representations, TokenBatch
from tercet.models.tokenizer import Tokenizer
from tests.models.conftest import MadeOnce, export_both
from tests.tiny.late_folders import GELU, TANH, Layer, write_multi_vector, write_pylate, write_stanford

TEXTS = [
    "hello world",
    "",
    "wing, air. heat!",
    "...",
    "the heat of the air, and a wave! 밤 별",
    "word " * 40,
    "a b c d e f g h i j k l m n o p q r s t u v w x y z",
]
KINDS: tuple[InputType, ...] = ("query", "document")
TOLERANCE = 1e-5
LAYERS = (
    Layer(64, bias=True, activation=GELU, residual=True),
    Layer(64, 64, residual=True),
    Layer(24, 64, bias=True, activation=TANH),
)


@dataclass(frozen=True)
class Rules:
    """What a layout asks for. lengths: of queries and documents at most, special tokens included."""

    markers: tuple[str, str]
    lengths: tuple[int, int]
    expansion: int | None = 12
    attend: bool = False
    skipped: str = ",.!?"
    layers: tuple[Layer, ...] = (Layer(16),)


@dataclass(frozen=True)
class Case:
    write: Callable[[Path], Path]
    rules: Rules


FIXED = {"strategy": "fixed", "attend": False, "token": None, "length": 12}
CASES = {
    "pylate": Case(write_pylate, Rules(("[Q] ", "[D] "), (12, 24))),
    "attended": Case(
        lambda folder: write_pylate(folder, attend_to_expansion_tokens=True),
        Rules(("[Q] ", "[D] "), (12, 24), attend=True),
    ),
    "unexpanded": Case(
        lambda folder: write_pylate(folder, do_query_expansion=False),
        Rules(("[Q] ", "[D] "), (12, 24), expansion=None),
    ),
    "layers": Case(
        lambda folder: write_pylate(folder, LAYERS, query_prefix="[unused0]", document_prefix="[unused1]"),
        Rules(("[unused0]", "[unused1]"), (12, 24), layers=LAYERS),
    ),
    "modernbert": Case(
        lambda folder: write_pylate(folder, kind="modernbert"), Rules(("[Q] ", "[D] "), (12, 24))
    ),
    "fixed": Case(
        lambda folder: write_multi_vector(folder, FIXED, document_length=24),
        Rules(("[Q] ", "[D] "), (12, 24), skipped=",."),
    ),
    "least": Case(
        lambda folder: write_multi_vector(
            folder, {"strategy": "min", "attend": True, "length": 8}, query_length=16, document_length=20
        ),
        Rules(("[Q] ", "[D] "), (16, 20), expansion=8, attend=True, skipped=",."),
    ),
    "plain": Case(
        lambda folder: write_multi_vector(folder, None, query_length=16),
        Rules(("[Q] ", "[D] "), (16, 48), expansion=None, skipped=",."),
    ),
    "stanford": Case(write_stanford, Rules(("[unused0]", "[unused1]"), (12, 24), skipped=",.!")),
}


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Rules]:
    found = CASES[request.param]
    return found.write(tmp_path_factory.mktemp("late") / request.param), found.rules


def projections(folder: Path, rules: Rules) -> list[dict[str, torch.Tensor]]:
    weights = load_file(folder / "model.safetensors")
    if "linear.weight" in weights:
        return [{"linear.weight": weights["linear.weight"]}]
    folders = (folder / f"{index}_Dense" for index in range(1, 1 + len(rules.layers)))
    return [load_file(layer / "model.safetensors") for layer in folders]


def expected(folder: Path, rules: Rules, text: str, kind: InputType) -> Float32:
    """The token vectors of one text, as the papers and the libraries' documents define them."""
    from tokenizers import Tokenizer as Library
    from transformers import AutoModel

    library = Library.from_file(str(folder / "tokenizer.json"))
    side = KINDS.index(kind)
    ids = library.encode(text).ids[: rules.lengths[side] - 2]
    ids = [*ids, library.token_to_id("[SEP]")] if ids[-1] != library.token_to_id("[SEP]") else ids
    marker = library.token_to_id(rules.markers[side])
    assert marker is not None
    ids.insert(1, marker)
    mask = [1] * len(ids)
    if kind == "query" and rules.expansion is not None:
        missing = max(0, rules.expansion - len(ids))
        ids += [library.token_to_id("[MASK]")] * missing
        mask += [int(rules.attend)] * missing
    body = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    with torch.no_grad():
        states = body(torch.tensor([ids]), torch.tensor([mask])).last_hidden_state[0]
        for layer, weights in zip(rules.layers, projections(folder, rules), strict=True):
            linear = states @ weights["linear.weight"].T
            if layer.bias:
                linear = linear + weights["linear.bias"]
            found = {GELU: torch.nn.functional.gelu, TANH: torch.tanh}.get(layer.activation, lambda x: x)(
                linear
            )
            if layer.residual:
                across = weights.get("residual.weight")
                found = found + (states if across is None else states @ across.T)
            states = found
        vectors = states / states.norm(dim=1, keepdim=True)
    skipped = {library.token_to_id(mark) for mark in rules.skipped}
    kept = [kind == "query" or one not in skipped for one in ids]
    return vectors[torch.tensor(kept)].numpy()


def vectors_of(encoder: Encoder, texts: list[str], kind: InputType) -> Representations:
    found = encode(encoder, texts, kind)
    assert found.colbert is not None
    return found


@pytest.mark.slow
def test_token_vectors_are_as_the_layout_says(case: tuple[Path, Rules]) -> None:
    folder, rules = case
    encoder = load_encoder(str(folder), "torch", device="cpu")
    assert encoder.info.sides == ("colbert",)
    for kind in KINDS:
        found = vectors_of(encoder, TEXTS, kind)
        assert found.colbert is not None
        for row, text in enumerate(TEXTS):
            wanted = expected(folder, rules, text, kind)
            assert found.colbert.row(row).shape == wanted.shape
            np.testing.assert_allclose(found.colbert.row(row), wanted, atol=TOLERANCE)


def test_alone_as_in_a_batch_of_both_kinds(case: tuple[Path, Rules]) -> None:
    encoder = load_encoder(str(case[0]), "torch", device="cpu")
    parts = [encoder.tokenizer.tokenize([text], kind) for text in TEXTS for kind in KINDS]
    together = encode_tokens(encoder, TokenBatch.concatenate(parts))
    assert together.colbert is not None
    for row, part in enumerate(parts):
        alone = encode_tokens(encoder, part)
        assert alone.colbert is not None
        np.testing.assert_allclose(together.colbert.row(row), alone.colbert.vectors, atol=TOLERANCE)


@pytest.fixture
def both(made_once: MadeOnce) -> Callable[[str], tuple[Path, Path]]:
    """Gives the folder of a case, and its graphs of float32 and int8; not to be changed."""

    def export_case(name: str) -> tuple[Path, Path]:
        folder = made_once(f"late/{name}", CASES[name].write)
        exported = made_once(
            f"exported/late-{name}", lambda place: export_both(folder, place, ["hello world"] * 4)
        )
        return folder, exported

    return export_case


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pylate", "attended", "layers", "least", "stanford"])
def test_an_exported_graph_gives_the_same(name: str, both: Callable[[str], tuple[Path, Path]]) -> None:
    folder, graphs = both(name)
    reference = load_encoder(str(folder), "torch", device="cpu")
    exported = load_encoder(str(graphs), precision="float32", device="cpu")
    int8 = load_encoder(str(graphs), precision="int8", device="cpu")
    assert exported.info.fingerprint == reference.info.fingerprint
    for kind in KINDS:
        wanted = vectors_of(reference, TEXTS, kind).colbert
        assert wanted is not None
        for encoder, tolerance in ((exported, 2e-5), (int8, 0.4)):
            found = vectors_of(encoder, TEXTS, kind).colbert
            assert found is not None
            np.testing.assert_array_equal(found.offsets, wanted.offsets)
            np.testing.assert_allclose(found.vectors, wanted.vectors, atol=tolerance)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "native"), [("least", True), ("plain", True), ("pylate", False)])
def test_our_own_kernels_where_no_token_is_hidden(
    name: str, native: bool, both: Callable[[str], tuple[Path, Path]]
) -> None:
    """They are as near to float32 as onnxruntime's, over the same tokens."""
    folder, graphs = both(name)
    if not native:
        with pytest.raises(UnsupportedError, match="hides no tokens of queries"):
            load_encoder(str(graphs), "native", device="cpu")
        return
    reference = load_encoder(str(folder), "torch", device="cpu")
    for kind in KINDS:
        wanted = vectors_of(reference, TEXTS, kind).colbert
        assert wanted is not None
        errors = []
        engines: tuple[Engine, ...] = ("native", "onnxruntime")
        for engine in engines:
            encoder = load_encoder(str(graphs), engine, device="cpu")
            found = vectors_of(encoder, TEXTS, kind).colbert
            assert found is not None
            np.testing.assert_array_equal(found.offsets, wanted.offsets)
            errors.append(1 - float((found.vectors * wanted.vectors).sum(1).mean()))
        assert errors[0] < 0.02
        assert errors[0] < 2 * errors[1] + 0.002


@pytest.mark.slow
def test_heads_stay_in_float32_in_an_int8_graph(both: Callable[[str], tuple[Path, Path]]) -> None:
    """Also where a layer has no bias by whose name its product is known, and the body has one like it."""
    import onnx

    _, graphs = both("layers")
    graph = onnx.load(graphs / "onnx" / "model_int8.onnx").graph
    after = [node.op_type for node in graph.node]
    last = len(after) - 1 - after[::-1].index("LayerNormalization")
    assert "MatMulIntegerToFloat" not in after[last:]
    assert after[last:].count("MatMul") == len(LAYERS) + 1  # and the first one's residual


def test_what_a_query_sees_of_its_expansion(tmp_path: Path) -> None:
    """Unattended mask tokens have vectors, and change none of the others'."""
    folder = write_pylate(tmp_path / "late")
    short = write_pylate(tmp_path / "short", query_length=8)
    long, cut = (
        encode(load_encoder(str(each), "torch", device="cpu"), ["hello"], "query") for each in (folder, short)
    )
    assert long.colbert is not None
    assert cut.colbert is not None
    assert (long.tokens.tolist(), cut.tokens.tolist()) == ([12], [8])
    np.testing.assert_allclose(long.colbert.vectors[:8], cut.colbert.vectors, atol=TOLERANCE)


def test_a_shorter_limit_of_the_caller(tmp_path: Path) -> None:
    encoder = load_encoder(str(write_pylate(tmp_path / "late")), "torch", device="cpu")
    assert encode(encoder, ["hello"], "query", max_length=6).tokens.tolist() == [6]
    assert encode(encoder, ["a " * 30], "query").truncated.tolist() == [True]
    assert encode(encoder, ["a " * 30], "query", max_length=24).tokens.tolist() == [12]
    assert encode(encoder, ["a " * 15], "document").truncated.tolist() == [False]
    with pytest.raises(UnsupportedError, match="takes 4 to 24 tokens"):
        encode(encoder, ["hello"], "query", max_length=25)


def test_real_configurations(tmp_path: Path) -> None:
    """Of GTE-ModernColBERT-v1 and of colbertv2.0 in PyLate's layout, by what their cards say."""
    body = write_pylate(tmp_path / "late", query_length=32, document_length=300, skiplist_words=list(",.!?"))
    config = json.loads((body / "config.json").read_text())
    (body / "config.json").write_text(json.dumps({**config, "max_position_embeddings": 8192}))
    settings = read_settings(body)
    assert (settings.pooling, settings.max_length) == ("none", 300)
    assert settings.late_interaction is not None
    assert settings.late_interaction.to_json() == {
        "query_marker": "[Q] ",
        "document_marker": "[D] ",
        "query_length": 32,
        "expansion_length": 32,
        "expansion_token": "[MASK]",
        "attend_to_expansion": False,
        "skiplist": [",", ".", "!", "?"],
        "skiplist_types": ["document"],
    }
    (body / "tercet.json").write_text(json.dumps({"max_length": 8192, "late_interaction": {"skiplist": []}}))
    longer = read_settings(body)
    assert longer.max_length == 8192
    assert longer.late_interaction is not None
    assert (longer.late_interaction.skiplist, longer.late_interaction.query_marker) == ((), "[Q] ")
    assert EncodingSettings.from_json(longer.to_json()) == longer


def test_an_expansion_without_a_mask_token(tmp_path: Path) -> None:
    """As of a decoder: with the last token instead."""
    folder = write_pylate(tmp_path / "late")
    change(folder, "tokenizer_config.json", mask_token=None, eos_token={"content": "[SEP]"})
    tokenizer = Tokenizer.load(folder, read_settings(folder))
    pieces = tokenizer.token_strings(tokenizer.tokenize(["wing"], "query").token_ids)
    assert pieces[3:] == ["[SEP]"] * 9


def test_prompts_stand_after_the_marker_once(tmp_path: Path) -> None:
    prompts = {"query": "[Q] find the ", "document": "[D] "}
    settings = read_settings(write_pylate(tmp_path / "late", prompts=prompts))
    assert (settings.query_instruction, settings.document_instruction) == ("find the ", "")


def test_what_has_no_vector_is_told_apart(tmp_path: Path) -> None:
    folder = write_pylate(tmp_path / "late")
    tokenizer = Tokenizer.load(folder, read_settings(folder))
    both = TokenBatch.concatenate([tokenizer.tokenize(["wing, air."], kind) for kind in KINDS])
    pieces = np.array(tokenizer.token_strings(both.token_ids))
    assert pieces[~tokenizer.has_vector(both)].tolist() == [",", "."]
    assert pieces[tokenizer.has_vector(both)][12:].tolist() == ["[CLS]", "[D] ", "wing", "air", "[SEP]"]
    assert both.unattended is not None
    assert both.unattended.tolist() == [5, 0]


def change(folder: Path, name: str, **values: Any) -> None:
    path = folder / name
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def test_older_settings_are_written_as_before() -> None:
    assert "late_interaction" not in EncodingSettings().to_json()
    assert "late_interaction" not in EncodingSettings().of_representations
