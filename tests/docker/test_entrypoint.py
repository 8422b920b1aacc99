"""docker/entrypoint.sh: kernels of the image reach the cache, whatever lies there already."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest


@pytest.fixture
def script(root: Path, tmp_path: Path) -> Path:
    """The script with the image's kernels below a temporary folder, and a `tercet` that tells its cache."""
    kernels = tmp_path / "kernels"
    (kernels / "index_1").mkdir(parents=True)
    (kernels / "index_1" / "a.nbi").write_text("compiled")
    (kernels / "id").write_text("0123\n")
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "tercet"
    command.write_text('#!/bin/sh\necho "$NUMBA_CACHE_DIR" "$@"\n')
    command.chmod(0o755)
    script = tmp_path / "entrypoint.sh"
    text = (root / "docker" / "entrypoint.sh").read_text(encoding="utf-8")
    assert "/opt/tercet/kernels" in text
    script.write_text(text.replace("/opt/tercet/kernels", str(kernels)))
    return script


def start(script: Path, cache: Path) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": f"{script.parent / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "NUMBA_CACHE_DIR": str(cache),
    }
    command = ["/bin/sh", str(script), "serve", "--port", "1"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True)


def test_an_empty_volume_gets_the_kernels_and_the_command_its_arguments(script: Path, tmp_path: Path) -> None:
    cache = tmp_path / "volume" / "numba"
    assert start(script, cache).stdout == f"{cache}/0123 serve --port 1\n"
    assert (cache / "0123" / "index_1" / "a.nbi").read_text() == "compiled"
    assert [path.name for path in cache.iterdir()] == ["0123"]


def test_what_another_processor_added_stays(script: Path, tmp_path: Path) -> None:
    start(script, tmp_path / "cache")
    added = tmp_path / "cache" / "0123" / "index_1" / "a.nbi"
    added.write_text("compiled here")
    start(script, tmp_path / "cache")
    assert added.read_text() == "compiled here"


def test_another_image_does_not_use_files_of_this_one(script: Path, tmp_path: Path) -> None:
    start(script, tmp_path / "cache")
    (script.parent / "kernels" / "id").write_text("4567")
    shutil.rmtree(script.parent / "kernels" / "index_1")
    assert start(script, tmp_path / "cache").stdout.startswith(f"{tmp_path}/cache/4567 ")
    assert not (tmp_path / "cache" / "4567" / "index_1").exists()


def test_of_two_that_start_at_once_one_brings_the_kernels(script: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    copy = script.parent / "bin" / "cp"  # while this one copies, another container finishes
    copy.write_text(f'#!/bin/sh\nmkdir -p "{cache}/0123" && touch "{cache}/0123/first"\n/bin/cp "$@"\n')
    copy.chmod(0o755)
    assert start(script, cache).returncode == 0
    assert [path.name for path in cache.iterdir()] == ["0123"]
    assert (cache / "0123" / "first").exists()
