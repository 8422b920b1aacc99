"""An adapter on disk: read as written, and refused where anything is not as it should be."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save

from tercet.models.adapters.blocks import BodyShape
from tercet.models.adapters.files import RECORD_FILE, TENSORS_FILE, is_adapter, read_adapter, write_adapter
from tercet.models.adapters.record import Adapter, AdapterBase
from tercet.models.adapters.settings import BottleneckSettings, LoraSettings, Placement, SparseSettings
from tercet.models.errors import CheckpointError

BASE = AdapterBase("tiny", "f" * 64, BodyShape(1, 4, 8))


def lora(seed: int = 0, **options: Any) -> Adapter:
    settings = LoraSettings(rank=2)
    random = np.random.default_rng(seed)
    arrays = {
        name: random.normal(size=shape).astype(np.float32)
        for name, shape in settings.shapes(BASE.body).items()
    }
    return Adapter(settings, BASE, arrays, **options)


def test_what_is_written_is_read(bert_adapters: Path, tmp_path: Path) -> None:
    for folder in sorted(bert_adapters.iterdir()):
        adapter = read_adapter(folder)
        assert adapter.base.name == "bert"
        assert (adapter.heads is not None) == (folder.name == "with-heads")
        again = tmp_path / folder.name
        write_adapter(again, adapter)
        assert read_adapter(again).digest == adapter.digest
        assert (again / RECORD_FILE).read_bytes() == (folder / RECORD_FILE).read_bytes()


def test_files_are_for_all_to_read_and_nothing_else_is_left(tmp_path: Path) -> None:
    write_adapter(tmp_path / "law", lora(0))
    write_adapter(tmp_path / "law", lora(1, language="ko", domain="law"))
    names = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "law").iterdir()}
    assert names == {RECORD_FILE: 0o644, TENSORS_FILE: 0o644}
    assert read_adapter(tmp_path / "law").domain == "law"
    assert b"pickle" not in (tmp_path / "law" / TENSORS_FILE).read_bytes()


def test_a_writing_that_was_cut_off_is_no_adapter_or_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "law"

    def fail_at_record(_record: Any, _tensors: Any) -> Any:
        raise OSError("no room")

    with monkeypatch.context() as patched:
        patched.setattr("tercet.models.adapters.files._record", fail_at_record)
        with pytest.raises(OSError, match="no room"):
            write_adapter(folder, lora(0))
        assert not is_adapter(folder)
    write_adapter(folder, lora(0))
    with monkeypatch.context() as patched:
        patched.setattr("tercet.models.adapters.files._record", fail_at_record)
        with pytest.raises(OSError, match="no room"):
            write_adapter(folder, lora(1))
    with pytest.raises(CheckpointError, match="its writing was cut off"):
        read_adapter(folder)


@pytest.mark.parametrize("name", ["Law", "a b", "ü", "a" * 65])
def test_a_name_that_is_no_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(CheckpointError, match="does not match"):
        write_adapter(tmp_path / name, lora())


def edit(**changes: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        record = json.loads((folder / RECORD_FILE).read_text())
        record.update(changes)
        record = {key: value for key, value in record.items() if value is not ...}
        (folder / RECORD_FILE).write_text(json.dumps(record))

    return change


def retensor(change: Callable[[dict[str, Any]], None]) -> Callable[[Path], None]:
    """Changes the tensors and the checksum with them."""
    import hashlib

    def apply(folder: Path) -> None:
        arrays = load_file(folder / TENSORS_FILE)
        change(arrays)
        content = save(arrays)
        (folder / TENSORS_FILE).write_bytes(content)
        edit(tensors_sha256=hashlib.sha256(content).hexdigest())(folder)

    return apply


@pytest.mark.parametrize(
    ("placement", "digest"),
    [
        ("feed_forward", "453deb0ab0c134ec3c9af927a07b5654378f596728dccb5e1f4d78d0ff884eba"),
        ("houlsby", "40058f273e71482f2f7f745a6d7e35862d14bd5585dcbce910a2bb4653704130"),
    ],
)
def test_a_bottleneck_keeps_its_digest_and_opens_under_its_former_name(
    tmp_path: Path, placement: Placement, digest: str
) -> None:
    settings = BottleneckSettings(width=2, placement=placement)
    arrays = {
        name: np.arange(np.prod(shape), dtype=np.float32).reshape(shape) / 8
        for name, shape in settings.shapes(BASE.body).items()
    }
    write_adapter(tmp_path / "law", Adapter(settings, BASE, arrays))
    assert read_adapter(tmp_path / "law").digest == digest
    record = json.loads((tmp_path / "law" / RECORD_FILE).read_text())
    assert record["settings"]["placement"] == placement
    if placement == "feed_forward":
        edit(settings={**record["settings"], "placement": "pfeiffer"})(tmp_path / "law")
        found = read_adapter(tmp_path / "law")
        assert (found.settings, found.digest) == (settings, digest)


A = "layers.0.query.lora_a"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (edit(format_version=2), r"adapter\.json has format version 2"),
        (edit(format_version=True), "has format version True"),
        (edit(colour="red"), r"unknown: \['colour'\]"),
        (edit(kind=...), r"keys missing: \['kind'\]"),
        (edit(kind="lorax"), r"adapter\.json: kind is 'lorax'"),
        (edit(kind=["lora"]), "kind is"),
        (edit(settings={"rank": 2, "size": 1}), r"adapter\.json: the settings .* unknown keys \['size'\]"),
        (edit(settings=[]), r"settings is \[\]; it must be an object"),
        (edit(base={"name": "x"}), r"adapter\.json: base must have"),
        (edit(language=3), "must be strings"),
        (edit(heads=None), "heads true or false"),
        (edit(heads=True), r"adapter\.safetensors: adapter\.json says heads True"),
        (edit(tensors_sha256="0" * 64), r"adapter\.safetensors has sha256"),
        (edit(settings={"rank": 3}), r"adapter\.safetensors: layers\.0\.query\.lora_a has shape \[2, 4\]"),
        (lambda folder: (folder / TENSORS_FILE).unlink(), r"adapter\.safetensors cannot be read"),
        (lambda folder: (folder / RECORD_FILE).write_text("{"), "cannot be read as JSON"),
        (lambda folder: (folder / RECORD_FILE).write_text("[]"), "a JSON object is expected"),
        (lambda folder: (folder / RECORD_FILE).unlink(), r"adapter\.json is missing"),
        (retensor(lambda arrays: arrays.pop(A)), r"lacks 1 tensors \['layers\.0\.query\.lora_a'\]"),
        (retensor(lambda arrays: arrays.update(more=arrays[A])), r"do not belong to it \['more'\]"),
        (retensor(lambda arrays: arrays.update({A: arrays[A][:1]})), r"has shape \[1, 4\]"),
        (retensor(lambda arrays: arrays.update({A: arrays[A] / 0})), "finite float32"),
        (retensor(lambda arrays: arrays.update({A: arrays[A].astype(np.float64)})), "finite float32"),
        (retensor(lambda arrays: arrays.update({"heads.x": arrays[A]})), "says heads False"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_what_is_refused(tmp_path: Path, damage: Callable[[Path], None], message: str) -> None:
    write_adapter(tmp_path / "law", lora())
    damage(tmp_path / "law")
    with pytest.raises(CheckpointError, match=message) as error:
        read_adapter(tmp_path / "law")
    assert str(tmp_path / "law") in str(error.value)


@pytest.mark.parametrize(
    "indices",
    [
        np.array([3, 3, 5], np.int32),
        np.array([5, 3, 7], np.int32),
        np.array([-1, 3, 5], np.int32),
        np.array([3, 5, 2**31 - 1], np.int32),
        np.array([2**31 - 1, 0, 5], np.int32),
        np.array([0, 3, 128], np.int32),
        np.array([1, 2, 3], np.int64),
        np.array([1, 2, 3], np.float32),
    ],
)
def test_indices_that_do_not_ascend_among_the_weights_are_refused(tmp_path: Path, indices: Any) -> None:
    arrays = {"indices": np.array([0, 3, 127], np.int32), "values": np.ones(3, np.float32)}
    settings = SparseSettings(count=3)
    adapter = Adapter(settings, BASE, arrays)
    write_adapter(tmp_path / "law", adapter)
    found = read_adapter(tmp_path / "law")
    np.testing.assert_array_equal(found.arrays["indices"], arrays["indices"])
    others = {**arrays, "indices": np.array([0, 3, 126], np.int32)}
    assert found.digest == adapter.digest != Adapter(settings, BASE, others).digest
    retensor(lambda stored: stored.update(indices=indices))(tmp_path / "law")
    with pytest.raises(CheckpointError, match="indices must be int32, ascending, from 0 and below 128"):
        read_adapter(tmp_path / "law")


def test_no_pickle_is_read(tmp_path: Path) -> None:
    import hashlib
    import pickle

    write_adapter(tmp_path / "law", lora())
    content = pickle.dumps({A: [1, 2]})
    (tmp_path / "law" / TENSORS_FILE).write_bytes(content)
    edit(tensors_sha256=hashlib.sha256(content).hexdigest())(tmp_path / "law")
    with pytest.raises(CheckpointError, match="cannot be read"):
        read_adapter(tmp_path / "law")


def test_the_digest_is_of_what_is_computed() -> None:
    one = lora()
    assert replace(one, description="for people", language="ko").digest == one.digest
    assert replace(one, settings=replace(one.settings, alpha=1.0)).digest != one.digest
    assert lora(1).digest != one.digest


def test_another_kind_replaces_all_of_the_former(tmp_path: Path, bert_adapters: Path) -> None:
    for name in ("with-heads", "stack", "ia3"):
        write_adapter(tmp_path / "law", read_adapter(bert_adapters / name))
    assert read_adapter(tmp_path / "law").kind == "ia3"
    shutil.rmtree(tmp_path / "law")
    write_adapter(tmp_path / "law", read_adapter(bert_adapters / "stack"))
    assert not (tmp_path / "law" / TENSORS_FILE).exists()
