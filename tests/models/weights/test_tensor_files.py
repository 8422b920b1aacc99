"""Heads that lie among a body's weights are found in every layout of files that a body comes in."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from tercet.models.encoder import encode
from tercet.models.errors import CheckpointError
from tercet.models.export_verification import largest_differences
from tercet.models.loader import load_encoder
from tercet.models.weights.tensor_files import read_body, read_weights
from tests.tiny.families import FAMILIES
from tests.tiny.family import write

MadeOnce = Callable[[str, Callable[[Path], object]], Path]
Tensors = dict[str, torch.Tensor]

GTE = next(family for family in FAMILIES if family.name == "gte")
TEXTS = ["hot tea", "the train leaves the green station"]
NAME = {"safetensors": "model", "bin": "pytorch_model"}
SAVE: dict[str, Callable[[Tensors, Path], None]] = {
    "safetensors": lambda tensors, path: save_file(tensors, path, metadata={"format": "pt"}),
    "bin": torch.save,
}


def rewrite(folder: Path, suffix: str, shards: int) -> None:
    """Puts the weights of model.safetensors into files of another layout; the head goes into the last."""
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(tensors, key=lambda name: name.startswith("classifier"))
    size = -(-len(names) // shards)
    files, placed = {}, {}
    for shard in range(shards):
        part = f"-{shard + 1:05}-of-{shards:05}" if shards > 1 else ""
        file = f"{NAME[suffix]}{part}.{suffix}"
        files[file] = {name: tensors[name] for name in names[shard * size : (shard + 1) * size]}
        placed.update(dict.fromkeys(files[file], file))
    for file, held in files.items():
        SAVE[suffix](held, folder / file)
    if shards > 1:
        index = {"metadata": {}, "weight_map": placed}
        (folder / f"{NAME[suffix]}.{suffix}.index.json").write_text(json.dumps(index))


@pytest.mark.slow
@pytest.mark.parametrize(("suffix", "shards"), [("bin", 1), ("bin", 2), ("safetensors", 3)])
def test_gte_has_its_lexical_side_whatever_its_weights_lie_in(
    tmp_path: Path, made_once: MadeOnce, suffix: str, shards: int
) -> None:
    expected = load_encoder(
        str(made_once("families/gte", lambda place: write(GTE, place))), "torch", device="cpu"
    )
    folder = write(GTE, tmp_path / "gte")
    rewrite(folder, suffix, shards)
    found = load_encoder(str(folder), "torch", device="cpu")
    assert found.info.sides == ("dense", "sparse")
    assert max(largest_differences(encode(expected, TEXTS), encode(found, TEXTS)).values()) == 0


def test_only_what_is_asked_for_is_read(tmp_path: Path) -> None:
    """In half precision it is read, too, as float32."""
    save_file({"one": torch.ones(2, dtype=torch.bfloat16), "two": torch.zeros(1)}, tmp_path / "a.safetensors")
    found = read_weights(tmp_path / "a.safetensors", ["one", "three"])
    assert {name: (values.tolist(), values.dtype.name) for name, values in found.items()} == {
        "one": ([1.0, 1.0], "float32")
    }


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "pytorch_model.bin"
    path.write_bytes(b"no weights")
    with pytest.raises(CheckpointError, match=r"pytorch_model\.bin cannot be read as plain weights: it is d"):
        read_body(tmp_path, ["linear.weight"])
