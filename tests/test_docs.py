"""What the documentation names must exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#]+)")
CODE_PATH = re.compile(
    r"`((?:service|ingest|models|index|training|evaluation|cli|benchmarks|examples|docs|docker|checkpoints|tests)/[\w./-]+)`"
)
MAKE_TARGET = re.compile(r"\bmake ([a-z]+)")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_named_paths_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    missing = [target for target in LINK.findall(text) if not (page.parent / target).exists()]
    missing += [path for path in CODE_PATH.findall(text) if not (ROOT / path).exists()]
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_named_make_targets_exist(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    commands = [
        line
        for block in re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), re.S)
        for line in block.splitlines()
    ]
    for target in (t for line in commands for t in MAKE_TARGET.findall(line)):
        assert re.search(rf"^{target}:", makefile, re.M), f"{page.name} names make {target}"
