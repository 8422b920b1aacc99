"""Processor, memory, GPUs and open files of this machine."""

from __future__ import annotations

import os
import platform
import resource
from collections.abc import Iterator
from pathlib import Path

from tercet.cli.doctor.findings import Finding
from tercet.models.cores import usable_cores
from tercet.service.load.open_files import LEAST_FILES

TOPIC = "machine"
PROC = Path("/proc")
# What onnxruntime, FAISS and our kernels make use of, as Linux names it.
X86_SETS = ("avx2", "fma", "f16c", "avx_vnni", "avx512f", "avx512_vnni", "amx_int8", "amx_bf16")
ARM_SETS = ("asimd", "asimddp", "i8mm", "bf16", "sve")
INT8_SETS = {"avx_vnni", "avx512_vnni", "amx_int8", "asimddp", "i8mm"}
LEAST_MEMORY_BYTES = 2 << 30  # for the encoder, its batches and a small collection
ADVISED_FILES = 1024  # half of them connections


def findings(proc: Path = PROC) -> Iterator[Finding]:
    """What the encoder and the index run on. proc: where Linux tells of itself."""
    present, usable = os.cpu_count() or 1, usable_cores()
    yield Finding("ok", TOPIC, f"{usable} of {present} CPUs may be used ({_processor(proc)})")
    yield from _instruction_sets(proc)
    yield from _memory(proc)
    yield from _gpus(proc)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= hard < ADVISED_FILES:  # -1 is no limit
        yield Finding(
            "problem" if hard < LEAST_FILES else "warning",
            TOPIC,
            f"{hard} files may be open, half of them connections; a server takes {LEAST_FILES} at least",
            f"raise the hard limit to {ADVISED_FILES} or more: ulimit -Hn, LimitNOFILE=, or --ulimit nofile=",
        )
    else:
        yield Finding("ok", TOPIC, f"{'any number of' if hard < 0 else max(soft, hard)} files may be open")


def _instruction_sets(proc: Path) -> Iterator[Finding]:
    known = {*X86_SETS, *ARM_SETS}
    lines = _lines(proc / "cpuinfo", ("flags", "Features"))
    flags = set(lines[0].split()) if lines else set()
    if not flags:
        yield Finding("note", TOPIC, "the processor's instruction sets are not known on this system")
        return
    sets = [name for name in (*X86_SETS, *ARM_SETS) if name in flags & known]
    if "asimd" not in flags and "avx2" not in flags:
        yield Finding(
            "warning",
            TOPIC,
            f"the processor has no AVX2 ({', '.join(sets) or 'none of those that matter'})",
            "encoding and searching take several times as long: take a processor of the last ten years",
        )
    elif not flags & INT8_SETS:
        yield Finding(
            "note", TOPIC, f"instruction sets: {', '.join(sets)}; none for 8-bit graphs, which gain less"
        )
    else:
        yield Finding("ok", TOPIC, f"instruction sets: {', '.join(sets)}")


def _memory(proc: Path) -> Iterator[Finding]:
    available = _lines(proc / "meminfo", ("MemAvailable",))
    total = _lines(proc / "meminfo", ("MemTotal",))
    if not (available and total):
        return
    free, all_bytes = (int(lines[0].split()[0]) * 1024 for lines in (available, total))
    text = f"{free / 2**30:.1f} of {all_bytes / 2**30:.1f} GiB of memory are available"
    if free < LEAST_MEMORY_BYTES:
        yield Finding("warning", TOPIC, text, "free some, or take a machine with more: 2 GiB is little")
    else:
        yield Finding("ok", TOPIC, text)


def _gpus(proc: Path) -> Iterator[Finding]:
    """NVIDIA's driver tells of its GPUs there, whatever is installed to use them."""
    described = sorted((proc / "driver/nvidia/gpus").glob("*/information"))
    names = [line for path in described for line in _lines(path, ("Model",))]
    if not names:
        yield Finding("ok", TOPIC, "no NVIDIA GPU; the encoder runs on the CPU")
        return
    from tercet.models.graphs.onnx_graph import has_cuda

    if has_cuda():
        yield Finding("ok", TOPIC, f"GPUs: {', '.join(names)}")
    else:
        yield Finding(
            "warning",
            TOPIC,
            f"there are GPUs ({', '.join(names)}), which this onnxruntime does not use",
            "in an environment of its own: pip install -c constraints.txt -e '.[gpu]'",
        )


def _processor(proc: Path) -> str:
    names = _lines(proc / "cpuinfo", ("model name",))
    return names[0] if names else platform.processor() or platform.machine()


def _lines(path: Path, names: tuple[str, ...]) -> list[str]:
    """What a file has after these names and a colon."""
    try:
        lines = path.read_text("utf-8", "replace").splitlines()
    except OSError:
        return []
    pairs = (line.partition(":") for line in lines)
    return [value.strip() for name, _, value in pairs if name.strip() in names]
