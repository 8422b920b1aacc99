"""`tercet embed`."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from tercet.cli import options
from tercet.models.encoder import encode
from tercet.service.encoding.service import local_encoder

Run = Callable[..., subprocess.CompletedProcess[str]]
TEXTS = ["Tea is brewed with hot water.", "", "김치", "water " * 600, "Tea is brewed with hot water."]


def write_texts(path: Path) -> Path:
    path.write_text("\n".join(json.dumps({"text": text, "other": 1}) for text in TEXTS))
    return path


@pytest.mark.slow
def test_arrays_in_input_order(tercet: Run, tmp_path: Path, embedded_checkpoint: Path) -> None:
    out = tmp_path / "out.safetensors"
    done = tercet("embed", "--input", str(write_texts(tmp_path / "x.jsonl")), "--output", str(out))
    assert done.returncode == 0, done.stderr
    assert "5 texts" in done.stderr
    assert "1 text is longer than the limit and was cut" in done.stderr
    found = load_file(out)
    settings = options.settings_from(checkpoint=str(embedded_checkpoint), threads=2)
    expected = encode(local_encoder(settings), TEXTS)
    assert expected.dense is not None
    assert expected.sparse is not None
    assert expected.colbert is not None
    np.testing.assert_allclose(found["dense"], expected.dense, atol=1e-5)
    np.testing.assert_array_equal(found["colbert_offsets"], expected.colbert.offsets)
    assert found["colbert"].shape == expected.colbert.vectors.shape
    assert found["sparse_indptr"][0] == 0
    assert found["sparse_indptr"][-1] == len(found["sparse_token_ids"]) == len(found["sparse_weights"])
    np.testing.assert_array_equal(found["tokens"], expected.tokens)
    np.testing.assert_array_equal(found["truncated"], expected.truncated)


def test_a_bad_line_is_named_and_leaves_no_file(tercet: Run, tmp_path: Path) -> None:
    path = write_texts(tmp_path / "x.jsonl")
    with path.open("a") as file:
        file.write('\n{"text": 5}\n')
    done = tercet("embed", "--input", str(path), "--output", str(tmp_path / "out.safetensors"))
    assert done.returncode == 1
    assert done.stderr == f'Error: {path} line 6: expected an object with a string as "text"\n'
    assert [each.name for each in tmp_path.iterdir()] == ["x.jsonl"]
