"""Both engines give what plain transformers gives, for each family of `tests/tiny/families.py`; what the
other layouts of `tests/tiny/layouts.py` give is alike on both.

The reference is one pass over one text without padding, by the library's plainest attention, pooled here.
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
from tokenizers import Tokenizer as Library
from torch.nn import functional
from transformers import AutoModel, GteConfig, PreTrainedModel

from tercet.models.encoder import Encoder, encode
from tercet.models.export_onnx import export
from tercet.models.export_verification import largest_differences
from tercet.models.loader import load_encoder
from tercet.models.representations import InputType
from tercet.models.weights.head_weights import read_heads
from tests.tiny.families import FAMILIES
from tests.tiny.family import SIZES, Family, write
from tests.tiny.layouts import LAYOUTS, Layout

pytestmark = pytest.mark.slow

MadeOnce = Callable[[str, Callable[[Path], object]], Path]

LARGEST_DIFFERENCE = 1e-4
TEXTS = [
    "hot tea",
    "",
    "the train leaves the green station, and water is hot " * 2,  # longer than the windows
    "brew tea 밤",
    "tea " * 400,  # cut at the limit
]
KINDS: tuple[InputType, ...] = ("document", "query")
POSITIONS = {
    "BERT": 64,
    "XLM-R": 64,
    "RoBERTa": 64,
    "MPNet": 64,
    "DistilBERT": 64,
    "DeBERTa": 64,
    "DeBERTa v3": 64,
    "ModernBERT": 96,
    "gte": 96,
    "jina-embeddings-v3": 96,
    "EmbeddingGemma": 96,
    "Qwen3-Embedding": 128,
}


@dataclass(frozen=True)
class Case:
    """A family, its checkpoint, the engines that have it, and what each kind of each of TEXTS has to give."""

    family: Family
    folder: Path
    torch: Encoder
    onnx: Encoder
    expected: dict[InputType, list[dict[str, Any]]]


@pytest.fixture(scope="module", params=FAMILIES, ids=lambda family: family.key)
def case(request: pytest.FixtureRequest, made_once: MadeOnce) -> Case:
    family: Family = request.param
    folder = made_once(f"families/{family.key}", lambda place: write(family, place))
    exported = made_once(f"families-exported/{family.key}", lambda place: export(folder, place, int8=False))
    body = plain_body(family, folder)
    return Case(
        family,
        folder,
        load_encoder(str(folder), "torch", device="cpu"),
        load_encoder(str(exported), precision="float32", device="cpu"),
        {kind: [reference(family, folder, body, text, kind) for text in TEXTS] for kind in KINDS},
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("engine", ["torch", "onnx"])
def test_engines_give_what_transformers_gives(case: Case, engine: str, kind: InputType) -> None:
    """In one padded batch, and each text alone."""
    encoder: Encoder = getattr(case, engine)
    assert encoder.info.sides == case.family.sides
    expected = case.expected[kind]
    for texts in (TEXTS, *([text] for text in TEXTS)):
        found = encode(encoder, texts, kind)
        rows = [TEXTS.index(text) for text in texts]
        assert found.dense is not None
        dense = np.stack([expected[row]["dense"] for row in rows])
        np.testing.assert_allclose(found.dense, dense, atol=LARGEST_DIFFERENCE, rtol=0)
        for place, row in enumerate(rows):
            if found.sparse is not None:
                ids, weights = found.sparse.row(place)
                wanted = expected[row]["sparse"]
                assert set(ids.tolist()) == set(wanted)
                for one, weight in zip(ids.tolist(), weights.tolist(), strict=True):
                    assert weight == pytest.approx(wanted[one], abs=LARGEST_DIFFERENCE)
            if found.colbert is not None:
                start, end = found.colbert.offsets[place : place + 2]
                vectors = found.colbert.vectors[start:end]
                np.testing.assert_allclose(vectors, expected[row]["colbert"], atol=LARGEST_DIFFERENCE, rtol=0)


def test_positions_end_where_the_table_does(case: Case) -> None:
    assert case.torch.info.max_length == POSITIONS[case.family.name]
    assert encode(case.torch, TEXTS).tokens.max() == POSITIONS[case.family.name]


def reference(
    family: Family, folder: Path, body: PreTrainedModel, text: str, kind: InputType
) -> dict[str, Any]:
    """Each side of one text, by transformers alone."""
    library = Library.from_file(str(folder / "tokenizer.json"))
    prompt = family.prompts.get(kind, "")
    ids = library.encode(prompt + text).ids
    limit = POSITIONS[family.name]
    last = library.encode("").ids[-1]
    if len(ids) > limit:
        ids = [*ids[: limit - 1], last]
    with torch.inference_mode():
        hidden = body(input_ids=torch.tensor([ids])).last_hidden_state[0]
    pooled = {"cls": hidden[0], "mean": hidden.mean(0), "lasttoken": hidden[-1]}[family.pooling]
    for place in range(len(family.layers)):
        pooled = pooled @ load_file(folder / f"{place + 2}_Dense" / "model.safetensors")["linear.weight"].T
    found: dict[str, Any] = {"dense": functional.normalize(pooled, dim=-1).numpy()}
    special = set(library.encode("").ids) | {library.token_to_id(name) for name in family.vocabulary[1]}
    heads = head_arrays(family, folder)
    if "sparse.weight" in heads:
        logits = hidden @ torch.from_numpy(heads["sparse.weight"])[0] + float(heads["sparse.bias"][0])
        weights: dict[int, float] = {}
        for token, weight in zip(ids, logits.relu().tolist(), strict=True):
            if token not in special and weight > 0:
                weights[token] = max(weight, weights.get(token, 0.0))
        found["sparse"] = weights
    if "colbert.weight" in heads:
        vectors = hidden @ torch.from_numpy(heads["colbert.weight"]).T + torch.from_numpy(
            heads["colbert.bias"]
        )
        found["colbert"] = functional.normalize(vectors[1:], dim=-1).numpy()
    return found


def head_arrays(family: Family, folder: Path) -> dict[str, Any]:
    """Those beside the body; GTE's from its classifier of tokens."""
    if family.name != "gte":
        return read_heads(folder, SIZES["hidden_size"]).arrays()
    weights = load_file(folder / "model.safetensors")
    return {f"sparse.{part}": weights[f"classifier.{part}"].numpy() for part in ("weight", "bias")}


def plain_body(family: Family, folder: Path) -> PreTrainedModel:
    """The body by the library's own loader; GTE's rotation set by its formula."""
    if family.name != "gte":
        return AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    values = json.loads((folder / "config.json").read_text())
    known = {name: values[name] for name in (*SIZES, "vocab_size", "layer_norm_eps")}
    rotation = {"rope_type": "default", "rope_theta": 1.0}
    body = AutoModel.from_pretrained(
        folder, config=GteConfig(**known, rope_parameters=rotation), attn_implementation="eager"
    ).eval()
    width, factor, theta = 8, 8.0, 20_000.0
    frequencies = (factor * theta) ** (-torch.arange(0, width, 2) / width) / factor ** (2 / width)
    body.rotary_emb.inv_freq = frequencies
    return body


def test_the_table_of_the_documentation_has_these_families(repository: Path) -> None:
    """And the figures of the last comparison with their libraries."""
    record = json.loads((repository / "benchmarks" / "results" / "families.json").read_text())
    figures: dict[tuple[str, str], tuple[str, str]] = {}
    for row in record["rows"]:
        figures[row["family"], row["engine"]] = row["from"], f"{row['largest_difference']:.0e}"
        assert row["largest_difference"] <= LARGEST_DIFFERENCE
        assert row["from"] in record["peers"]
    page = (repository / "docs" / "checkpoints.md").read_text(encoding="utf-8")
    table = page.partition("| family | such as |")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]
    assert [row[0] for row in rows] == [layout.name for layout in LAYOUTS]
    for layout, (name, _, sides, library, *differences) in zip(LAYOUTS, rows, strict=True):
        assert sides == ", ".join(layout.sides)
        engines = ("static", "static") if (name, "static") in figures else ("torch", "onnx")
        wanted = [figures[name, engine] for engine in engines]
        assert [(library, difference) for difference in differences] == wanted


@pytest.mark.parametrize("layout", LAYOUTS[len(FAMILIES) :], ids=lambda layout: layout.key)
def test_other_layouts_are_alike_on_both_engines(layout: Layout, made_once: MadeOnce) -> None:
    """What they give is compared with the formulas where each is read: test_late_interaction.py,
    test_splade.py, test_dense_modules.py and test_static_encoder.py.
    """
    folder = made_once(f"layouts/{layout.key}", layout.write)
    reference = load_encoder(str(folder), "torch", device="cpu")
    assert reference.info.sides == layout.sides
    other = folder
    if reference.info.engine == "torch":
        other = made_once(f"layouts-exported/{layout.key}", lambda place: export(folder, place, int8=False))
    encoder = load_encoder(str(other), precision="float32", device="cpu")
    assert encoder.info.sides == layout.sides
    for kind in ("query", "document"):
        wanted, found = (encode(each, TEXTS, kind) for each in (reference, encoder))
        assert max(largest_differences(wanted, found).values()) <= LARGEST_DIFFERENCE
