"""The variant for AMX, with its instructions in C: all tests of what is made of byte products hold for it."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tercet.index.native.kernels import AVAILABLE_INSTRUCTIONS

HERE = Path(__file__).parent
ROOT = HERE.parents[2]

WITH_ANOTHER_MODULE = """
import importlib.util, sys
import pytest

name, path, *arguments = sys.argv[1:]
spec = importlib.util.spec_from_file_location(name, path)
module = importlib.util.module_from_spec(spec)
sys.modules[name] = module
spec.loader.exec_module(module)
assert module.AVAILABLE_INSTRUCTIONS == ("plain",)
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", *arguments]))
"""


@pytest.fixture(scope="module")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kernels as they are compiled for AMX, but of no instruction that this processor may lack."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        yield _compiled(tmp_path_factory.mktemp("amx"), monkeypatch)


def _setup() -> Any:
    """`setup.py` as a module."""
    spec = importlib.util.spec_from_file_location("tercet_setup", ROOT / "setup.py")
    assert spec is not None
    assert spec.loader is not None
    setup = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(setup)
    return setup


def _choose_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    if importlib.util.find_spec("ziglang") is None and not os.environ.get("CC"):
        if shutil.which("cc") is None:  # an installation compiles by a Zig that goes with it
            pytest.skip("no C compiler")
        monkeypatch.setenv("CC", "cc")


def _compiled(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    setup = _setup()
    _choose_compiler(monkeypatch)
    plain = setup.VARIANTS.get(platform.machine(), {"plain": ()})["plain"]
    flags = (*plain, "-D__AMX_INT8__", "-include", str(HERE / "amx_in_c.h"))
    setup.VARIANTS = {platform.machine(): {"plain": flags}}
    monkeypatch.setenv("CFLAGS", "-O1")  # which gives the same numbers in half of the compiler's time
    setup.build(folder / "kernels.abi3.so", folder)
    return folder / "kernels.abi3.so"


@pytest.mark.slow
@pytest.mark.parametrize("file", ["test_byte_products.py", "test_maxsim.py", "test_damage.py"])
def test_tiles_of_the_processor_give_the_same_numbers(emulated: Path, file: str) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            WITH_ANOTHER_MODULE,
            "tercet.index.native.kernels",
            str(emulated),
            str(HERE / file),
        ],
        cwd=ROOT,
        env=os.environ | {"TERCET_INSTRUCTIONS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_variants_can_be_chosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    setup = _setup()
    setup.VARIANTS = {platform.machine(): {"best": ("-mbest",), "plain": ("-mplain",)}}
    assert list(setup.chosen_variants(tmp_path)) == ["best", "plain"]
    monkeypatch.setenv("KERNEL_VARIANTS", "plain")
    assert setup.chosen_variants(tmp_path) == {"plain": ("-mplain",)}
    monkeypatch.setenv("KERNEL_VARIANTS", "plain other")
    with pytest.raises(SystemExit, match="KERNEL_VARIANTS has other: choose among best, plain"):
        setup.chosen_variants(tmp_path)


def test_the_own_variant_is_the_one_that_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    setup = _setup()
    monkeypatch.setenv("KERNEL_VARIANTS", "own")
    _choose_compiler(monkeypatch)
    assert list(setup.chosen_variants(tmp_path)) == [AVAILABLE_INSTRUCTIONS[0]]
    monkeypatch.setenv("KERNEL_TARGET", f"{platform.machine()}-linux-gnu.2.17")
    with pytest.raises(SystemExit, match="KERNEL_VARIANTS is own, which is of this machine"):
        setup.chosen_variants(tmp_path)
