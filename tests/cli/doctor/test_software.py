"""What is told of installed packages."""

from __future__ import annotations

from importlib import metadata

import pytest

from tercet.cli.doctor import software


def test_what_is_here() -> None:
    found = list(software.findings())
    assert {each.state for each in found} <= {"ok", "note"}
    assert metadata.version("tercet") in found[0].text
    complete = next(each.text for each in found if each.text.startswith("extras that are complete"))
    assert "cpu" in complete
    assert "dev" not in complete


def test_both_builds_of_a_library_are_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(software, "_version", lambda name: "1.0")
    problems = [each for each in software.findings() if each.state == "problem"]
    assert [each.text for each in problems] == [
        "onnxruntime and onnxruntime-gpu are both installed, and overwrite each other's files",
        "faiss-cpu and faiss-gpu are both installed, and overwrite each other's files",
    ]


def test_neither_build_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(software, "_version", lambda name: None)
    problems = [each.text for each in software.findings() if each.state == "problem"]
    assert problems == [
        "neither onnxruntime nor onnxruntime-gpu is installed",
        "neither faiss-cpu nor faiss-gpu is installed",
    ]
