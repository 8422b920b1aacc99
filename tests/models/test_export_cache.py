"""Checkpoints that come without graphs, at their first start."""

import errno
import importlib.util
import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from transformers import LongformerConfig, LongformerModel

from tercet.models import export_cache
from tercet.models.encoder import encode
from tercet.models.errors import CheckpointError, UnsupportedError
from tercet.models.export_cache import KEPT, cached_export, entries
from tercet.models.export_verification import largest_differences
from tercet.models.loader import load_encoder

pytestmark = pytest.mark.slow

TEXTS = ["hello wave", "the heat of the air " * 4]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that tests of this module share."""
    return tmp_path_factory.mktemp("exports")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_two_that_start_at_once_export_once(
    bert: Path, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The one waits for the other; the checkpoint itself stays as it is; representations are torch's."""
    before = contents(bert)
    found: list[Path | None] = []
    with caplog.at_level(logging.WARNING, "tercet"):
        starts = [
            threading.Thread(target=lambda: found.append(cached_export(bert, "bert", None, cache)))
            for _ in range(2)
        ]
        for start in starts:
            start.start()
        for start in starts:
            start.join()
    assert found == [entries(cache)[0]] * 2
    assert sum("is exported to" in message for message in caplog.messages) == 1
    assert any("by another process; this one waits" in message for message in caplog.messages)
    assert sum(message.startswith("checkpoint bert is exported: float32") for message in caplog.messages) == 1
    assert contents(bert) == before
    assert not list(cache.glob(".unfinished*"))
    onnx = load_encoder(str(bert), device="cpu", export_cache=cache)
    plain = load_encoder(str(bert), "torch", device="cpu")
    assert (onnx.info.engine, onnx.info.name) == ("onnxruntime", "bert")
    assert onnx.info.fingerprint == plain.info.fingerprint
    assert onnx.info.checkpoint == str(bert)
    assert max(largest_differences(encode(onnx, TEXTS), encode(plain, TEXTS)).values()) < 1e-4
    assert len(entries(cache)) == 1


def test_an_entry_is_of_these_very_files(
    bert: Path, bert_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def key(folder: Path, origin: str | None = None) -> str:
        return export_cache._key(folder, [folder / "model.safetensors"], origin)

    assert key(bert_copy) == key(bert)
    (bert_copy / "tercet.json").write_text('{"pooling": "cls"}')
    changed = key(bert_copy)
    assert changed != key(bert)
    monkeypatch.setattr(export_cache, "VERSION", 99)
    assert key(bert_copy) != changed


def test_an_entry_is_of_the_modules_that_a_folder_lists(bert_copy: Path) -> None:
    """A graph has their weights built in, whatever their folders are called."""

    def key() -> str:
        return export_cache._key(bert_copy, [bert_copy / "model.safetensors"], None)

    module = "sentence_transformers.models.{}"
    listed = [("", "Transformer"), ("pool", "Pooling"), ("projection", "Dense")]
    modules = [{"path": path, "type": module.format(name)} for path, name in listed]
    (bert_copy / "modules.json").write_text(json.dumps(modules))
    for path in ("pool", "projection", "unrelated"):
        (bert_copy / path).mkdir()
    (bert_copy / "pool" / "config.json").write_text('{"pooling_mode": "cls"}')
    found = [key()]
    (bert_copy / "pool" / "config.json").write_text('{"pooling_mode": "mean"}')
    found.append(key())
    (bert_copy / "projection" / "pytorch_model.bin").write_bytes(b"weights")
    found.append(key())
    assert len(set(found)) == 3
    (bert_copy / "unrelated" / "optimizer.pt").write_bytes(b"of a training run")
    assert key() == found[-1]


def test_an_entry_is_of_heads_among_the_weights_of_another(bert: Path, bert_copy: Path) -> None:
    """As GTE has them."""
    (bert_copy / "heads.safetensors").unlink()
    weights = [bert / "model.safetensors"]
    before = export_cache._key(bert, weights, None, bert_copy)
    (bert_copy / "model.safetensors").write_bytes(b"others")
    assert export_cache._key(bert, weights, None, bert_copy) != before


def test_an_entry_of_the_hub_is_of_a_revision(tmp_path: Path) -> None:
    """Its files, of many gigabytes, are not read for it."""
    folder = tmp_path / "abc123"
    assert export_cache._key(folder, [folder / "absent"], "some/body@abc123") != export_cache._key(
        folder, [folder / "absent"], "other/body@abc123"
    )


def test_what_cannot_be_exported_runs_on_torch(
    bert: Path,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A body that looks at values to choose what it computes; it is tried once."""
    folder, cache = tmp_path / "longformer", tmp_path / "exports"
    write_longformer(folder, bert)
    encoder = load_encoder(str(folder), device="cpu", export_cache=cache)
    assert encoder.info.engine == "torch"
    reason = "LongformerModel cannot be exported (Could not guard on data-dependent expression"
    assert f"longformer runs on torch, more slowly than exported: {reason}" in caplog.text
    assert "def forward(" not in "".join(capfd.readouterr())  # torch prints the graph that it gave up on
    assert entries(cache) == []
    caplog.clear()
    monkeypatch.setattr(export_cache, "_make", lambda *_: pytest.fail("it is tried again"))
    assert load_encoder(str(folder), device="cpu", export_cache=cache).info.engine == "torch"
    assert reason in caplog.text


def write_longformer(folder: Path, bert: Path) -> Path:
    """A checkpoint that has no graph."""
    torch.manual_seed(4)
    config = LongformerConfig(
        vocab_size=71,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=1,
        num_attention_heads=4,
        attention_window=8,
        max_position_embeddings=66,
        pad_token_id=1,
    )
    LongformerModel(config).save_pretrained(folder)
    (folder / "tokenizer.json").write_bytes((bert / "tokenizer.json").read_bytes())
    (folder / "tercet.json").write_text('{"pooling": "mean"}')
    return folder


def test_without_torch_one_line_says_what_to_install(
    bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    lacking = {"torch"}
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name in lacking else found(name, *rest)
    )
    with pytest.raises(
        UnsupportedError, match=r"bert has no exported graph.*pip install .*'\.\[cpu,torch\]'"
    ):
        load_encoder(str(bert), device="cpu", export_cache=tmp_path)
    lacking.clear()
    lacking.add("onnxscript")  # as in the image for GPUs, which has torch
    assert load_encoder(str(bert), device="cpu", export_cache=tmp_path).info.engine == "torch"
    assert "to export it needs onnxscript" in caplog.text


def test_a_cache_that_cannot_be_written(bert: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    cache = tmp_path / "file" / "exports"
    assert load_encoder(str(bert), device="cpu", export_cache=cache).info.engine == "torch"
    assert f"{cache} cannot be written" in caplog.text


def test_a_cache_that_cannot_be_written_any_more_serves_what_it_has(
    bert: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one within an image, on a read-only disk."""
    made = cached_export(bert, "bert", None, cache)

    def refuse(*_: Any) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(os, "utime", refuse)
    assert cached_export(bert, "bert", None, cache) == made


def test_an_export_ends_with_the_process_that_asked_for_it(
    bert: Path, tmp_path: Path, repository: Path
) -> None:
    """Killed in the middle, it leaves no process that works on, and the next start exports anew."""
    code = (
        "import sys; from pathlib import Path; from tercet.models.export_cache import cached_export; "
        "cached_export(Path(sys.argv[1]), 'bert', None, Path(sys.argv[2]))"
    )
    started = subprocess.Popen(
        [sys.executable, "-c", code, str(bert), str(tmp_path)], cwd=repository, stderr=subprocess.DEVNULL
    )
    until(lambda: any(tmp_path.glob(".unfinished-*")))
    exporting = [each for each in psutil.Process(started.pid).children() if "spawn_main" in command(each)]
    assert len(exporting) == 1
    started.kill()
    started.wait()
    exporting[0].wait(60)
    assert entries(tmp_path) == []
    assert cached_export(bert, "bert", None, tmp_path) == entries(tmp_path)[0]
    assert not list(tmp_path.glob(".unfinished-*"))


def command(process: psutil.Process) -> str:
    return " ".join(process.cmdline())


def until(holds: Callable[[], bool]) -> None:
    ends = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < ends
        time.sleep(0.05)


def test_a_killed_export_runs_on_torch(
    bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Killed:
        def __init__(self, *_: Any) -> None: ...
        def __enter__(self) -> "Killed":
            return self

        def __exit__(self, *_: object) -> None: ...
        def submit(self, *_: Any) -> None:
            raise export_cache.BrokenProcessPool

    monkeypatch.setattr(export_cache, "ProcessPoolExecutor", Killed)
    assert cached_export(bert, "bert", None, tmp_path) is None
    assert "more memory than there is" in caplog.text
    assert not list(tmp_path.glob("*.refused.json"))


def test_a_folder_without_weights_is_named(bert_copy: Path, tmp_path: Path) -> None:
    (bert_copy / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"model\.safetensors is missing"):
        load_encoder(str(bert_copy), device="cpu", export_cache=tmp_path)


def test_the_entry_unused_for_longest_goes(bert: Path, cache: Path, tmp_path: Path) -> None:
    for age in range(KEPT + 2):
        (tmp_path / f"entry-{age}").mkdir()
        os.utime(tmp_path / f"entry-{age}", (1000 - age, 1000 - age))
    export_cache._drop_unused(tmp_path)
    assert [path.name for path in entries(tmp_path)] == [f"entry-{age}" for age in range(KEPT)]
    assert len(list(tmp_path.iterdir())) == KEPT
