"""Compiles the kernels of `index/native` and `models/native` for each variant of the processor, and links
those of each to one module.

The compiler is the one that CC names, else Zig's from the package index, which brings all that it needs;
CFLAGS adds flags, such as those of sanitizers; KERNEL_VARIANTS names the variants, by default all; `own` is
the best one of the processor that compiles.
KERNEL_TARGET names another machine and system, as Zig does: aarch64-linux-gnu.2.17, aarch64-macos.11.0.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import os
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
SHARED = ROOT / "index" / "native"  # what both modules are made with: the binding, and what the processor has
SHARED_FILES = ("binding.c", "module.c", "processor.c")
SHARED_HEADERS = ("arrays.h", "binding.h", "lanes.h", "panel_products.h", "processor.h", "stable_abi.h")
OLDEST_GLIBC = "2.17"
LAYOUTS = "layouts.c"
# Package → its errors for instructions that the processor has not, and for damaged numbers.
ERRORS = {
    "index": ("SearchIndexError", "DamagedIndexError"),
    "models": ("UnsupportedError", "CheckpointError"),
}
# The compiler fuses no steps, so that every variant gives the same numbers; sums of damaged numbers wrap. No
# vector is passed between files, which is what GCC's notes on the ABI are about.
FLAGS = (
    "-std=gnu11",
    "-O3",
    "-fPIC",
    "-fvisibility=hidden",
    "-ffp-contract=off",
    "-fwrapv",
    "-fno-math-errno",
    "-Wall",
    "-Wextra",
    "-Wno-psabi",
)
_AVX2 = ("-mavx2", "-mbmi", "-mbmi2", "-mf16c", "-mfma", "-mlzcnt", "-mmovbe", "-mpopcnt")
_AVX512 = tuple(f"-mavx512{part}" for part in ("f", "bw", "cd", "dq", "vl", "vnni"))
# By machine, the best first; `processor.c` tells which of them a processor has.
VARIANTS = {
    "x86_64": {
        "amx": (*_AVX2, *_AVX512, "-mamx-tile", "-mamx-int8", "-mprefer-vector-width=512"),
        "avx512_vnni": (*_AVX2, *_AVX512, "-mprefer-vector-width=512"),
        "avx2": _AVX2,
        "plain": ("-msse4.2",),  # which NumPy asks for, too
    },
    "aarch64": {
        "neon_i8mm": ("-mcpu=generic+dotprod+i8mm",),
        "neon_dotprod": ("-mcpu=generic+dotprod",),
        "plain": (),
    },
}
VARIANTS["arm64"] = VARIANTS["aarch64"]  # as macOS names it


class BuildKernels(build_ext):
    """Compiles them where an extension is built, also in place for an editable installation."""

    def build_extension(self, ext: Extension) -> None:
        package = ext.name.split(".")[1]
        build(Path(self.get_ext_fullpath(ext.name)), Path(self.build_temp).resolve(), package)


def build(target: Path, folder: Path, package: str = "index") -> None:
    """Compiles the module of a package to a file; objects and the compiler's cache go to a folder.

    Raises SystemExit where there is no compiler, subprocess.CalledProcessError where it fails.
    """
    folder.mkdir(parents=True, exist_ok=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    extra = shlex.split(os.environ.get("CFLAGS", ""))
    variants = chosen_variants(folder)
    refused, damaged = ERRORS[package]
    flags = (
        *FLAGS,
        *extra,
        f"-I{SHARED}",
        f"-DVARIANTS(EACH)={''.join(f' EACH({name})' for name in variants)}",
        f'-DSOURCES="{digest(package)}"',
        f'-DPACKAGE="tercet.{package}"',
        f'-DREFUSED_ERROR="{refused}"',
        f'-DDAMAGED_ERROR="{damaged}"',
    )
    sources = ROOT / package / "native"
    common = [*(SHARED / name for name in SHARED_FILES), sources / LAYOUTS]
    steps: list[tuple[Path, Path, Sequence[str]]] = [
        (path, folder / f"{package}-{path.name}.o", ()) for path in common
    ]
    for name, own in variants.items():
        for path in sorted(set(sources.glob("*.c")).difference(common)):
            result = folder / f"{package}-{path.name}-{name}.o"
            steps.append((path, result, (*own, f"-DVARIANT={name}")))

    def compile_one(step: tuple[Path, Path, Sequence[str]]) -> str:
        source, result, own = step
        run_compiler(folder, *flags, *own, "-c", str(source), "-o", str(result))
        return str(result)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(compile_one, steps))
    fresh = target.with_name(f"{target.name}.new")  # a process may have the former one mapped
    run_compiler(folder, *link_options(), *extra, *objects, "-o", str(fresh))
    fresh.replace(target)


def run_compiler(folder: Path, *arguments: str) -> None:
    """Its cache goes to a folder. Raises subprocess.CalledProcessError where it fails."""
    caches = {f"ZIG_{kind}_CACHE_DIR": str(folder / "zig") for kind in ("GLOBAL", "LOCAL")}
    subprocess.run([*compiler(), *arguments], check=True, env={**os.environ, **caches})


def link_options() -> Sequence[str]:
    """Of a library that is loaded by a running program."""
    if is_macos():
        return "-dynamiclib", "-undefined", "dynamic_lookup"
    # Zig would compile the C library's stubs first, for six seconds; the interpreter brings that library.
    return ("-shared",) if os.environ.get("CFLAGS") else ("-shared", "-s", "-nostdlib")


def chosen_variants(folder: Path) -> dict[str, Sequence[str]]:
    """The variants to compile, with their flags. Raises SystemExit for a name that the machine has not."""
    variants: dict[str, Sequence[str]] = {**VARIANTS.get(machine(), {"plain": ()})}
    named = os.environ.get("KERNEL_VARIANTS", "").split() or list(variants)
    if named == ["own"]:
        named = [own_variant(list(variants), folder)]
    if unknown := sorted(set(named) - set(variants)):
        raise SystemExit(f"KERNEL_VARIANTS has {', '.join(unknown)}: choose among {', '.join(variants)}")
    return {name: flags for name, flags in variants.items() if name in named}


def own_variant(variants: Sequence[str], folder: Path) -> str:
    """The first that this processor has, as `processor.c` tells. Raises SystemExit where that is compiled for
    another machine.
    """
    if os.environ.get("KERNEL_TARGET"):
        raise SystemExit("KERNEL_VARIANTS is own, which is of this machine: leave KERNEL_TARGET out")
    compiled, library = folder / "processor.o", folder / "processor.so"
    run_compiler(folder, "-O2", "-fPIC", "-c", str(SHARED / "processor.c"), "-o", str(compiled))
    run_compiler(folder, *link_options(), str(compiled), "-o", str(library))
    has = ctypes.CDLL(str(library))
    return next(name for name in variants if has[f"has_{name}"]())


def target() -> str:
    """What to compile for, as Zig names it: KERNEL_TARGET, else on Linux with glibc this machine and the
    oldest glibc, as modules run with that or any newer one. Empty for this machine as it is. Raises
    SystemExit for another name.
    """
    if named := os.environ.get("KERNEL_TARGET"):
        if not re.fullmatch(r"\w+-(linux-gnu|macos)\.\d+\.\d+", named):
            raise SystemExit(
                f"KERNEL_TARGET is {named}; it names a machine, and linux-gnu or macos with a version, such "
                "as aarch64-linux-gnu.2.17"
            )
        return named
    oldest = not os.environ.get("CC") and platform.libc_ver()[0] == "glibc"
    return f"{platform.machine()}-linux-gnu.{OLDEST_GLIBC}" if oldest else ""


def machine() -> str:
    """The machine to compile for."""
    return target().partition("-")[0] or platform.machine()


def is_macos() -> bool:
    """Whether the module is for macOS."""
    return "-macos" in target() if target() else sys.platform == "darwin"


def compiler() -> list[str]:
    """The command that compiles C."""
    if os.environ.get("CC"):
        return shlex.split(os.environ["CC"])
    if importlib.util.find_spec("ziglang") is None:
        raise SystemExit("no C compiler: install ziglang, or name one in the variable CC")
    command = [sys.executable, "-m", "ziglang", "cc"]
    return [*command, "-target", target()] if target() else command


def wheel_options() -> dict[str, str]:
    """For the wheel's name: CPython 3.11 or later, and the systems that its modules run on."""
    options = {"py_limited_api": "cp311"}
    system, _, version = target().partition("-")[2].partition(".")
    if system and not os.environ.get("CC"):
        name = {"linux-gnu": "manylinux", "macos": "macosx"}[system]
        processor = machine().replace("aarch64", "arm64") if is_macos() else machine()
        options["plat_name"] = f"{name}_{version.replace('.', '_')}_{processor}"
    return options


def digest(package: str) -> str:
    """Of all sources of a package's module, by which a test tells whether it is made of them."""
    total = hashlib.sha256()
    own = set((ROOT / package / "native").glob("*.[ch]"))
    for path in sorted(own | {SHARED / name for name in (*SHARED_FILES, *SHARED_HEADERS)}):
        total.update(f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return total.hexdigest()


if __name__ == "__main__":
    setup(
        ext_modules=[
            Extension(f"tercet.{package}.native.kernels", [], py_limited_api=True) for package in ERRORS
        ],
        cmdclass={"build_ext": BuildKernels},
        options={"bdist_wheel": wheel_options()},
    )
