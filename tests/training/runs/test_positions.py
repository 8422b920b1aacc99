"""Widened positions: texts that the base reads stay as they are, longer ones are served and exported."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from tercet.models.encoder import encode
from tercet.models.export_onnx import export
from tercet.models.loader import load_encoder
from tercet.training.distributed import Ranks
from tercet.training.errors import ConfigError
from tercet.training.runs.base import open_base
from tercet.training.runs.positions import require_widening, widen_positions, wider_table

Run = Callable[..., Any]
DOCUMENTS = {
    "passage_tokens": 48,
    "sources": [{"path": "long.txt", "title": "L", "licence": "CC0 1.0", "format": "texts"}],
}
RETROMAE = {
    "stage": "retromae",
    "encoder": {"pooling": "cls", "positions": 64},
    "data": DOCUMENTS,
    "batches": {"groups": [{"tokens": 48, "batch": 4}], "sub_batch_tokens": 100},
    "losses": None,
    "heads": None,
    "optimization.steps": 2,
}


def write_long_texts(folder: Path) -> None:
    """Eight documents that need more than the base's 32 positions."""
    lines = [" ".join(f"word{(n * 7 + k) % 40}" for k in range(40 + n)) for n in range(8)]
    (folder / "long.txt").write_text("\n".join(lines))


def states(body: Any, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        found: torch.Tensor = body(input_ids=ids, attention_mask=mask).last_hidden_state
    return found


def test_texts_that_the_base_reads_have_the_same_states(tiny_body: Any) -> None:
    padding = tiny_body.config.pad_token_id
    # XLM-RoBERTa's table has two rows that no text uses.
    longest = 24 if tiny_body.config.model_type == "bert" else 22
    wider = deepcopy(tiny_body)
    widen_positions(wider, 100)
    ids = torch.randint(5, 40, (3, longest))
    ids[1, 9:] = padding
    ids[2, 1:] = padding
    mask = (ids != padding).long()
    assert torch.equal(states(wider, ids, mask), states(tiny_body, ids, mask))
    before, after = (each.embeddings.position_embeddings.weight for each in (tiny_body, wider))
    assert torch.equal(after[:24], before)
    assert len(after) == wider.config.max_position_embeddings == 100 + (24 - longest)
    assert after.requires_grad


def test_states_beyond_differ_by_position_and_do_not_change_with_padding(tiny_body: Any) -> None:
    widen_positions(tiny_body, 100)
    padding = tiny_body.config.pad_token_id
    ids = torch.full((1, 100), 7)
    found = states(tiny_body, ids, torch.ones_like(ids))
    assert len({tuple(state.tolist()) for state in found[0]}) == 100
    ids[0, 60:] = padding
    padded = states(tiny_body, ids, (ids != padding).long())
    torch.testing.assert_close(padded[:, :60], states(tiny_body, ids[:, :60], torch.ones(1, 60).long()))


def test_new_positions_by_hand() -> None:
    wider = wider_table(torch.tensor([[1.0], [2.0]]), 4)
    # α = 0.4: u_0 = (1 − 0.4) / 0.6 = 1 and u_1 = (2 − 0.4) / 0.6 = 8/3.
    expected = [1.0, 2.0, 0.4 * 8 / 3 + 0.6 * 1, 0.4 * 8 / 3 + 0.6 * 8 / 3]
    assert wider.flatten().tolist() == pytest.approx(expected)


@pytest.mark.slow
def test_a_widened_base_is_pre_trained_served_and_exported(
    run: Run, base_folder: Path, tmp_path: Path
) -> None:
    write_long_texts(tmp_path / "data")
    (base_folder / "tokenizer_config.json").write_text('{"model_max_length": 32, "lang": "한국어"}')
    run("long", RETROMAE)
    folder = tmp_path / "long"
    assert json.loads((folder / "config.json").read_text())["max_position_embeddings"] == 64
    assert json.loads((folder / "tercet.json").read_text())["max_length"] == 64
    limit = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    assert limit == {"model_max_length": 64, "lang": "한국어"}
    table = load_file(folder / "model.safetensors")["embeddings.position_embeddings.weight"]
    assert table.shape == (64, 16)
    encoder = load_encoder(str(folder), "torch", device="cpu")
    assert encoder.info.max_length == 64
    texts = [" ".join(["word1"] * count + ["word2"]) for count in (3, 60)]
    served = encode(encoder, texts, "document", {"dense"})
    export(folder, tmp_path / "exported", int8=False)
    graph = load_encoder(str(tmp_path / "exported"), "onnxruntime", device="cpu")
    assert graph.info.max_length == 64
    exported = encode(graph, texts, "document", {"dense"})
    np.testing.assert_allclose(exported.dense, served.dense, atol=1e-5)


@pytest.mark.parametrize("given", [{"positions": 40}, {"positions": 64, "max_length": 40}])
def test_max_length_follows_unless_it_is_given(
    settings_of: Callable[[dict[str, Any]], Any], tmp_path: Path, given: dict[str, int]
) -> None:
    settings = settings_of({"encoder": {"pooling": "mean", **given}})
    base = open_base(settings, tmp_path, "cpu", Ranks())
    assert base.encoding.max_length == 40
    assert base.model.body.config.max_position_embeddings == given["positions"]  # type: ignore[union-attr]  # of transformers


def test_a_base_with_heads_is_widened(
    run: Run, settings_of: Callable[[dict[str, Any]], Any], tmp_path: Path
) -> None:
    run("first", {"optimization.steps": 1})
    base = {"name": "first", "licence": "MIT", "checkpoint": str(tmp_path / "first")}
    changes = {"base": base, "heads": None, "encoder": {"positions": 64}}
    opened = open_base(settings_of(changes), tmp_path, "cpu", Ranks())
    assert opened.has_heads
    assert opened.encoding.max_length == 64


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        ({"positions": 32}, "encoder.positions: it is 32, but must be from 33 to 1024, since the base has"),
        ({"positions": 1025}, "encoder.positions: it is 1025, but must be from 33 to 1024"),
        ({"positions": 64, "max_length": 65}, "encoder.max_length: it is 65, but encoder.positions gives it"),
    ],
)
def test_what_does_not_fit_is_refused(run: Run, encoder: dict[str, int], message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{message}"):
        run("out", {"encoder": encoder})


def test_a_body_without_learned_positions_is_refused() -> None:
    config = {"model_type": "modernbert", "max_position_embeddings": 8192}
    with pytest.raises(ConfigError, match="the base is of type modernbert; leave it out"):
        require_widening(config, 9000)


def test_a_fresh_body_has_positions_of_its_own(settings_of: Callable[[dict[str, Any]], Any]) -> None:
    sizes = {"layers": 1, "width": 8, "attention_heads": 2, "intermediate": 16}
    with pytest.raises(ConfigError, match=r"^encoder\.positions: it is 64, but must be left out with"):
        settings_of({"architecture": sizes, "encoder": {"positions": 64}})
