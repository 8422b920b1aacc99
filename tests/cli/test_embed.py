"""`tercet embed` and the streamed file of arrays."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

from cli import options
from cli.array_file import ArrayFile
from models.encoder import encode
from service.encoding import local_encoder

Run = Callable[..., subprocess.CompletedProcess[str]]
TEXTS = ["Tea is brewed with hot water.", "", "김치", "water " * 600, "Tea is brewed with hot water."]


def write_texts(path: Path) -> Path:
    path.write_text("\n".join(json.dumps({"text": text, "other": 1}) for text in TEXTS))
    return path


def test_arrays_in_input_order(tercet: Run, tmp_path: Path, embedded_checkpoint: Path) -> None:
    out = tmp_path / "out.safetensors"
    done = tercet("embed", "--input", str(write_texts(tmp_path / "x.jsonl")), "--output", str(out))
    assert done.returncode == 0, done.stderr
    assert "5 texts" in done.stderr
    assert "1 texts are longer than the limit and were cut" in done.stderr
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


def test_array_file(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    with ArrayFile(path) as file:
        for part in range(3):
            file.append("rows", np.full((part, 2), part, np.float32))
            file.append("flags", np.array([part > 0]))
        file.append("empty", np.zeros((0, 4), np.int32))
        file.append("offsets", np.arange(2, dtype=np.int64))
        assert file.rows("rows") == 3
        assert file.rows("absent") == 0
        file.finish({"model": "tiny"})
    arrays = load_file(path)
    assert arrays["rows"].tolist() == [[1, 1], [2, 2], [2, 2]]
    assert arrays["flags"].tolist() == [False, True, True]
    assert arrays["empty"].shape == (0, 4)
    assert arrays["offsets"].tolist() == [0, 1]
    with ArrayFile(tmp_path / "y") as file:
        file.append("rows", arrays["rows"])  # and never finished
    assert [each.name for each in tmp_path.iterdir()] == ["x.safetensors"]
