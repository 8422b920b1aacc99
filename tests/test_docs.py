"""What the documentation names must exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
KOREAN = sorted(path.name for path in (ROOT / "docs/ko").iterdir())
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#]+)")
CODE_PATH = re.compile(
    r"`((?:service|ingest|models|index|training|evaluation|cli|benchmarks|examples|docs|docker|checkpoints|tests)/[\w./-]+)`"
)
CODE = re.compile(r"```.*?```", re.S)
CODE_WORD = re.compile(r"`[^`]+`")
COMMANDS = re.compile(r"```sh\n(.*?)```", re.S)
HEADING = re.compile(r"^(#+) (.*)$", re.M)
MAKE_TARGET = re.compile(r"\bmake ([a-z]+)")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_named_paths_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    missing = [target for target in LINK.findall(text) if not (page.parent / target).exists()]
    missing += [path for path in CODE_PATH.findall(text) if not (ROOT / path).exists()]
    assert not missing


def test_pages_are_short() -> None:
    """Two screens for a README, a quarter of an hour for a page."""
    for name in ("README.md", "README.ko.md"):
        assert len((ROOT / name).read_text(encoding="utf-8").splitlines()) <= 120, name
    words = {page: len(page.read_text(encoding="utf-8").split()) for page in PAGES}
    assert {page.name: count for page, count in words.items() if count > 3000} == {}


@pytest.mark.parametrize("page", KOREAN)
def test_korean_pages_have_the_parts_and_the_code_of_the_english_ones(page: str) -> None:
    english, korean = ((ROOT / "docs" / place / page).read_text(encoding="utf-8") for place in (".", "ko"))
    assert CODE.findall(korean) == CODE.findall(english)
    assert [level for level, _ in HEADING.findall(korean)] == [level for level, _ in HEADING.findall(english)]
    rows = [CODE_WORD.findall(row) for row in korean.splitlines() if row.startswith("| ")]
    expected = [CODE_WORD.findall(row) for row in english.splitlines() if row.startswith("| ")]
    assert rows == expected
    # What a page names outside of code; the order may be another one in another language.
    english, korean = (
        set(CODE_WORD.findall(CODE.sub("", each).replace("\n", " "))) for each in (english, korean)
    )
    assert korean == english


def test_korean_pages_link_to_korean_ones() -> None:
    for page in [ROOT / "README.ko.md", *(ROOT / "docs" / "ko").iterdir()]:
        linked = {
            (page.parent / target).resolve() for target in LINK.findall(page.read_text(encoding="utf-8"))
        }
        assert not linked & {ROOT / "docs" / name for name in KOREAN}, page.name


def test_the_korean_readme_names_the_commands_of_the_english_one() -> None:
    readmes = [(ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "README.ko.md")]
    english, korean = (
        [line for block in COMMANDS.findall(readme) for line in block.splitlines() if "-d '" not in line]
        for readme in readmes
    )
    assert korean == english


@pytest.mark.slow
def test_the_site_is_built_with_every_page_and_link(tmp_path: Path) -> None:
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    assert "not included in the" not in built.stderr
    for page in ("index.html", "ko/index.html", "clients/python.html", "checkpoints/multi-m3.html"):
        assert (tmp_path / page).is_file()
    for page in tmp_path.rglob("*.html"):
        loaded = re.findall(
            r'<(?:script|link|img)[^>]*?(?:src|href)="(https?:[^"]+)"', page.read_text("utf-8")
        )
        assert not loaded, f"{page.name} loads from elsewhere"


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


def test_every_peer_has_a_lock_file_that_is_named() -> None:
    text = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    locks = sorted((ROOT / "benchmarks" / "peers").glob("*.txt"))
    installed = re.findall(r"pip install -r (benchmarks/peers/\w+\.txt)", text)
    assert {str(lock.relative_to(ROOT)) for lock in locks} == set(installed)
    assert len(re.findall(r"-m venv /tmp/", text)) == len(installed)
    for lock in locks:
        for line in lock.read_text(encoding="utf-8").splitlines():
            assert re.fullmatch(r"[a-z0-9][a-z0-9.-]*==[0-9][a-z0-9.]*", line), f"{lock.name}: {line}"


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks").glob("*.py")), ids=lambda path: path.stem)
def test_a_benchmark_is_asked_what_it_does_before_it_does_it(path: Path) -> None:
    """`--help` of a script without a parser would run it, and write over the committed results."""
    source = path.read_text(encoding="utf-8")
    assert "ArgumentParser(" in source or '__name__ == "__main__"' not in source
