"""Estimates how many products of bytes a processor does in a cycle, where no such processor is at hand: the
inner loops of the kernels, as they are compiled for each variant, in llvm-mca's models of processors.

A model knows ports and latencies, and takes all that is read to be in the nearest cache. Needs ziglang, which
compiles the package, and llvm-mca and llvm-objdump of LLVM 19 or later.

Run: python -m benchmarks.cycles [--suffix=-19]
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = {"encoder": "models/native/layers.c", "late interaction": "index/native/maxsim.c"}
TARGETS = {"x86_64": "x86_64-linux-gnu", "aarch64": "aarch64-linux-gnu"}
# Machine, variant, and llvm-mca's name of the processor.
PROCESSORS = {
    "Neoverse N1 (Graviton 2, Ampere Altra)": ("aarch64", "neon_dotprod", "neoverse-n1"),
    "Neoverse V1 (Graviton 3)": ("aarch64", "neon_i8mm", "neoverse-v1"),
    "Neoverse V2 (Graviton 4, Grace)": ("aarch64", "neon_i8mm", "neoverse-v2"),
    "the same by dot products": ("aarch64", "neon_dotprod", "neoverse-v2"),
    "Apple M1": ("aarch64", "neon_dotprod", "apple-m1"),
    "Haswell (AVX2)": ("x86_64", "avx2", "haswell"),
    "Zen 3 (AVX2)": ("x86_64", "avx2", "znver3"),
    "Ice Lake (AVX-512 VNNI)": ("x86_64", "avx512_vnni", "icelake-server"),
    "Sapphire Rapids (AVX-512 VNNI)": ("x86_64", "avx512_vnni", "sapphirerapids"),
}
# Products of bytes that an instruction does. AVX2 has two ways: the encoder's weights are small enough for
# bytes, and late interaction takes the same values as 16-bit numbers.
PRODUCTS = {r"[us]+mmla": 32, r"[us]+dot": 16, r"vpdpbusd.*zmm": 64, r"vpmaddubsw.*ymm": 32}
PRODUCTS_OF_SHORTS = {r"vpmaddwd.*ymm": 16}
ITERATIONS = 200


@dataclass(frozen=True)
class Loop:
    """Assembly of a loop without others in it, and how many products an iteration does."""

    assembly: str
    products: int


def main() -> None:
    """Prints a line for each processor and kernel."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suffix", default="-19", help="of LLVM's programs, as the system names them")
    suffix = parser.parse_args().suffix
    loops: dict[tuple[str, str, str], Loop] = {}
    for processor, (machine, variant, model) in PROCESSORS.items():
        for kernel, source in SOURCES.items():
            key = (machine, variant, kernel)
            if key not in loops:
                loops[key] = inner_loop(assembly_of(source, machine, variant, suffix))
            loop = loops[key]
            cycles = cycles_of(loop, machine, model, suffix)
            print(
                f"{processor}, {kernel}: {loop.products} products in {cycles:.1f} cycles, "
                f"{loop.products / cycles:.0f} a cycle"
            )


def assembly_of(source: str, machine: str, variant: str, suffix: str) -> str:
    """A file of kernels in assembly, as the package's build compiles it for a variant."""
    spec = importlib.util.spec_from_file_location("tercet_setup", ROOT / "setup.py")
    assert spec is not None
    assert spec.loader is not None
    setup = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(setup)
    command = [sys.executable, "-m", "ziglang", "cc", "-target", TARGETS[machine]]
    flags = (*setup.FLAGS, *setup.VARIANTS[machine][variant], f"-I{setup.SHARED}", f"-DVARIANT={variant}")
    with tempfile.TemporaryDirectory() as folder:
        made = str(Path(folder) / "kernels.o")
        subprocess.run([*command, *flags, "-c", "-o", made, str(ROOT / source)], check=True)
        options = ("--disassemble", "--no-show-raw-insn")
        done = subprocess.run(
            [f"llvm-objdump{suffix}", *options, made], check=True, capture_output=True, text=True
        )
    return done.stdout


def inner_loop(assembly: str) -> Loop:
    """The loop without another in it that has the most products an iteration."""
    best, lines = Loop("", 0), list[tuple[int, str]]()
    for address, text in re.findall(r"^\s*([0-9a-f]+):\s+(\S.*)", assembly, re.MULTILINE):
        here, instruction = int(address, 16), text.partition("<")[0]
        lines.append((here, instruction))
        branch = re.match(r"(?:b|j|cbn?z)\S*\s+(?:\w+, )?(0x[0-9a-f]+)", instruction)
        if branch is None or int(branch[1], 16) > here:
            continue
        body = [each for place, each in lines if place >= int(branch[1], 16)][:-1]
        loop = Loop("\n".join(body), products_of(body, PRODUCTS) or products_of(body, PRODUCTS_OF_SHORTS))
        best = loop if loop.products > best.products else best
        lines.clear()  # a loop around this one has it in it
    return best


def products_of(body: list[str], products: dict[str, int]) -> int:
    """How many products some instructions do."""
    return sum(count for line in body for name, count in products.items() if re.match(name, line))


def cycles_of(loop: Loop, machine: str, model: str, suffix: str) -> float:
    """Cycles of an iteration among many."""
    done = subprocess.run(
        [f"llvm-mca{suffix}", f"-mtriple={TARGETS[machine]}", f"-mcpu={model}", f"-iterations={ITERATIONS}"],
        input=loop.assembly,
        check=True,
        capture_output=True,
        text=True,
    )
    total = re.search(r"Total Cycles:\s+(\d+)", done.stdout)
    assert total is not None
    return int(total[1]) / ITERATIONS


if __name__ == "__main__":
    main()
