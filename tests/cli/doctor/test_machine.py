"""What is told of a machine, from what its kernel says."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from tercet.cli.doctor.machine import findings


def told(tmp_path: Path, cpuinfo: str, meminfo: str = "") -> list[tuple[str, str]]:
    (tmp_path / "cpuinfo").write_text(cpuinfo, "utf-8")
    (tmp_path / "meminfo").write_text(meminfo, "utf-8")
    return [(each.state, each.text) for each in findings(tmp_path)]


@pytest.mark.parametrize(
    ("cpuinfo", "state", "text"),
    [
        ("flags\t: fpu avx2 fma avx512_vnni", "ok", "instruction sets: avx2, fma, avx512_vnni"),
        ("flags\t: fpu avx2 fma", "note", "instruction sets: avx2, fma; none for 8-bit graphs"),
        ("flags\t: fpu sse4_2", "warning", "the processor has no AVX2 (none of those that matter)"),
        ("Features\t: fp asimd asimddp", "ok", "instruction sets: asimd, asimddp"),
        ("", "note", "the processor's instruction sets are not known on this system"),
    ],
)
def test_instruction_sets(tmp_path: Path, cpuinfo: str, state: str, text: str) -> None:
    matching = [(s, t) for s, t in told(tmp_path, cpuinfo) if t.startswith(text)]
    assert [s for s, _ in matching] == [state]


def test_memory(tmp_path: Path) -> None:
    meminfo = "MemTotal:       4194304 kB\nMemAvailable:   {} kB\n"
    assert ("ok", "3.0 of 4.0 GiB of memory are available") in told(
        tmp_path, "", meminfo.format(3 * 1024 * 1024)
    )
    assert ("warning", "1.0 of 4.0 GiB of memory are available") in told(
        tmp_path, "", meminfo.format(1024 * 1024)
    )


def test_gpus_that_onnxruntime_does_not_use(tmp_path: Path) -> None:
    folder = tmp_path / "driver/nvidia/gpus/0000:01:00.0"
    folder.mkdir(parents=True)
    (folder / "information").write_text("Model: \t\t NVIDIA H200\nIRQ: 7\n", "utf-8")
    from tercet.models.graphs.onnx_graph import has_cuda

    states = [state for state, text in told(tmp_path, "") if "NVIDIA H200" in text]
    assert states == ["ok" if has_cuda() else "warning"]


@pytest.mark.parametrize(
    ("hard", "state"), [(127, "problem"), (128, "warning"), (1023, "warning"), (1024, "ok"), (-1, "ok")]
)
def test_open_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hard: int, state: str) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, hard))
    (found,) = (finding for finding in findings(tmp_path) if "files may be open" in finding.text)
    assert found.state == state
