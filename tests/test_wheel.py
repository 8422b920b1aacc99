"""The wheel's name says where its modules run."""

from __future__ import annotations

import importlib.util
import platform
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def setup() -> Any:
    spec = importlib.util.spec_from_file_location("tercet_setup", ROOT / "setup.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc")
def test_the_platform_is_that_of_the_compiler(setup: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    name = f"manylinux_2_17_{platform.machine()}"
    assert setup.wheel_options() == {"py_limited_api": "cp311", "plat_name": name}
    for target, platform_of_wheel in (
        ("aarch64-linux-gnu.2.17", "manylinux_2_17_aarch64"),
        ("aarch64-macos.11.0", "macosx_11_0_arm64"),
        ("x86_64-macos.11.0", "macosx_11_0_x86_64"),
    ):
        monkeypatch.setenv("KERNEL_TARGET", target)
        assert setup.wheel_options()["plat_name"] == platform_of_wheel
    for target in ("aarch64-linux-gnu", "x86_64-windows-gnu.1.0"):
        monkeypatch.setenv("KERNEL_TARGET", target)
        with pytest.raises(SystemExit, match=f"KERNEL_TARGET is {target}; it names a machine"):
            setup.wheel_options()
    monkeypatch.delenv("KERNEL_TARGET")
    monkeypatch.setenv("CC", "gcc")
    assert "plat_name" not in setup.wheel_options(), "that of this machine, whose C library may be newer"


def test_modules_need_no_library_and_no_newer_glibc(setup: Any) -> None:
    """What `auditwheel` looks at. Sanitized modules, which need libraries of their own, are no wheel's."""
    oldest = tuple(map(int, setup.OLDEST_GLIBC.split(".")))
    for package in setup.ERRORS:
        (path,) = (ROOT / package / "native").glob("kernels*.so")
        content = path.read_bytes()
        if b"__asan_init" in content:
            pytest.skip("sanitized modules")
        assert re.findall(rb"\0(lib[\w.+-]+\.so[\w.]*)\0", content) == []
        for major, minor in re.findall(rb"\bGLIBC_(\d+)\.(\d+)", content):
            assert (int(major), int(minor)) <= oldest
