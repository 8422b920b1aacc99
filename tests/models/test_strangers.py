"""Files of strangers' checkpoints: whatever they hold is read, or refused by a named error, and soon.

`tests/endurance/files/strangers.py` tries many more.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tercet.models.checkpoint import read_json
from tercet.models.errors import CheckpointError
from tercet.models.fingerprint import weight_files
from tercet.models.formats.sentence_transformers import modules_in
from tercet.models.graphs.record import read_export
from tests.models.strangers import graph_targets, settings_targets, tokenizer_targets, weights_targets
from tests.strangers.children import Target, try_mutations

MUTATIONS = 150  # of each file
KINDS: dict[str, tuple[Callable[[Path], list[Target]], int]] = {
    "settings": (settings_targets, 8),
    "tokenizers": (tokenizer_targets, 3),
    "weights": (weights_targets, 3),
}


@pytest.mark.parametrize(
    ("kind", "number"), [(kind, n) for kind, (_, count) in KINDS.items() for n in range(count)]
)
def test_changed_files_are_read_or_refused_by_name(tmp_path: Path, kind: str, number: int) -> None:
    require_sound(KINDS[kind][0](tmp_path)[number])


def test_changed_graphs_are_read_or_refused_by_name(tmp_path: Path, bert_exported: Path) -> None:
    (target,) = graph_targets(tmp_path, bert_exported)
    require_sound(target)


def require_sound(target: Target) -> None:
    outcome = try_mutations(target, range(MUTATIONS))
    assert not outcome.failures
    assert outcome.counts["loaded"] + outcome.counts["refused"] == MUTATIONS
    assert outcome.counts["loaded"] > 0
    assert outcome.counts["refused"] > 0 or target.name == "tokenizer_config.json"


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    """To open a pipe would wait for its other end."""
    os.mkfifo(tmp_path / "config.json")
    with pytest.raises(CheckpointError, match=r"config\.json cannot be read as JSON: it is no file"):
        read_json(tmp_path / "config.json")


def test_halves_of_characters_are_refused(tmp_path: Path) -> None:
    """No file could have them again, and no fingerprint."""
    (tmp_path / "tercet.json").write_text('{"query_instruction": "\\ud800"}')
    with pytest.raises(CheckpointError, match=r"tercet\.json cannot be read as JSON"):
        read_json(tmp_path / "tercet.json")


@pytest.mark.parametrize("path", ["..", "../other", "/etc", "a/../../b", "a" * 300, "\0"])
def test_files_do_not_lead_out_of_their_folder(tmp_path: Path, path: str) -> None:
    module = {"type": "sentence_transformers.models.Transformer", "path": path}
    (tmp_path / "modules.json").write_text(json.dumps([module]))
    with pytest.raises(CheckpointError, match=r"modules\.json: the path .* is not within its folder"):
        modules_in(tmp_path)
    (tmp_path / "modules.json").unlink()
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": path}}))
    with pytest.raises(CheckpointError, match="weight_map must name the file of each tensor, all beside it"):
        weight_files(tmp_path)


def test_a_graph_without_its_checksum_is_refused(tmp_path: Path) -> None:
    graph: dict[str, Any] = {"file": "../model.onnx", "files": {"model.onnx": "a"}, "differences": {}}
    record = {
        "format": 1,
        "weights": "",
        "heads": "",
        "pooling": "cls",
        "mcls_every": None,
        "graphs": {"int8": graph},
    }
    (tmp_path / "onnx").mkdir()
    (tmp_path / "onnx" / "export.json").write_text(json.dumps(record))
    with pytest.raises(CheckpointError, match="a graph has no checksum"):
        read_export(tmp_path)
