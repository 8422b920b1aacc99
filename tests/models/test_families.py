"""Both engines give what plain transformers gives, for each family of `benchmarks/tiny/families.py`.

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
from tokenizers import Tokenizer as Library
from torch.nn import functional
from transformers import AutoModel, GteConfig, PreTrainedModel

from benchmarks.tiny.families import FAMILIES, SIZES, Family, write
from models.encoder import Encoder, encode
from models.export_onnx import export
from models.loader import load_encoder
from models.representations import InputType
from models.weights.head_weights import read_heads

MadeOnce = Callable[[str, Callable[[Path], object]], Path]

LARGEST_DIFFERENCE = 1e-4
TEXTS = [
    "hot tea",
    "",
    "the train leaves the green station, and water is hot " * 2,  # longer than the windows
    "brew tea 밤",
    "tea " * 400,  # cut at the limit
]
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
    """A family, its checkpoint, and the engines that have it."""

    family: Family
    folder: Path
    torch: Encoder
    onnx: Encoder


@pytest.fixture(scope="module", params=FAMILIES, ids=lambda family: family.key)
def case(request: pytest.FixtureRequest, made_once: MadeOnce) -> Case:
    family: Family = request.param
    folder = made_once(f"families/{family.key}", lambda place: write(family, place))
    exported = made_once(f"families-exported/{family.key}", lambda place: export(folder, place, int8=False))
    return Case(
        family,
        folder,
        load_encoder(str(folder), "torch", device="cpu"),
        load_encoder(str(exported), precision="float32", device="cpu"),
    )


@pytest.mark.parametrize("kind", ["document", "query"])
@pytest.mark.parametrize("engine", ["torch", "onnx"])
def test_engines_give_what_transformers_gives(case: Case, engine: str, kind: InputType) -> None:
    """In one padded batch, and each text alone."""
    encoder: Encoder = getattr(case, engine)
    assert encoder.info.sides == case.family.sides
    expected = [reference(case, text, kind) for text in TEXTS]
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


def reference(case: Case, text: str, kind: InputType) -> dict[str, Any]:
    """Each side of one text, by transformers alone."""
    library = Library.from_file(str(case.folder / "tokenizer.json"))
    prompt = case.family.prompts.get(kind, "")
    ids = library.encode(prompt + text).ids
    limit = POSITIONS[case.family.name]
    last = library.encode("").ids[-1]
    if len(ids) > limit:
        ids = [*ids[: limit - 1], last]
    with torch.inference_mode():
        hidden = plain_body(case)(input_ids=torch.tensor([ids])).last_hidden_state[0]
    pooled = {"cls": hidden[0], "mean": hidden.mean(0), "lasttoken": hidden[-1]}[case.family.pooling]
    found: dict[str, Any] = {"dense": functional.normalize(pooled, dim=-1).numpy()}
    special = set(library.encode("").ids) | {library.token_to_id(name) for name in case.family.vocabulary[1]}
    heads = head_arrays(case)
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


def head_arrays(case: Case) -> dict[str, Any]:
    """Those beside the body; GTE's from its classifier of tokens."""
    if case.family.name != "gte":
        return read_heads(case.folder, SIZES["hidden_size"]).arrays()
    from safetensors.numpy import load_file

    weights = load_file(case.folder / "model.safetensors")
    return {"sparse.weight": weights["classifier.weight"], "sparse.bias": weights["classifier.bias"]}


def plain_body(case: Case) -> PreTrainedModel:
    """The body by the library's own loader; GTE's rotation set by its formula."""
    if case.family.name != "gte":
        return AutoModel.from_pretrained(case.folder, attn_implementation="eager").eval()
    values = json.loads((case.folder / "config.json").read_text())
    known = {name: values[name] for name in (*SIZES, "vocab_size", "layer_norm_eps")}
    rotation = {"rope_type": "default", "rope_theta": 1.0}
    body = AutoModel.from_pretrained(
        case.folder, config=GteConfig(**known, rope_parameters=rotation), attn_implementation="eager"
    ).eval()
    width, factor, theta = 8, 8.0, 20_000.0
    frequencies = (factor * theta) ** (-torch.arange(0, width, 2) / width) / factor ** (2 / width)
    body.rotary_emb.inv_freq = frequencies
    return body


def test_the_table_of_the_documentation_has_these_families(repository: Path) -> None:
    """And the figures of the last comparison with the peer."""
    record = json.loads((repository / "benchmarks" / "results" / "families.json").read_text())
    figures: dict[tuple[str, str], float] = {}
    for row in record["rows"]:
        figures[row["family"], row["engine"]] = row["largest_difference"]
        assert row["largest_difference"] <= LARGEST_DIFFERENCE
    page = (repository / "docs" / "checkpoints.md").read_text(encoding="utf-8")
    table = page.partition("| family | such as |")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]
    assert [(name, sides, torch, onnx) for name, _, sides, torch, onnx in rows] == [
        (
            family.name,
            ", ".join(family.sides),
            f"{figures[family.name, 'torch']:.0e}",
            f"{figures[family.name, 'onnx']:.0e}",
        )
        for family in FAMILIES
    ]
