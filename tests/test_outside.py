"""`make outside`: what it counts, and that each of its parts has what it needs."""

import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent

REPORT = """<testsuites><testsuite>
<testcase classname="tests.test_a.TestStore" name="test_one"/>
<testcase classname="tests.test_a.TestStore" name="test_two"/>
<testcase classname="tests.test_b" name="test_three"/>
<testcase classname="tests.test_b" name="test_four"><skipped message="needs a key">x</skipped></testcase>
<testcase classname="tests.test_b" name="test_five"><failure message="no">x</failure></testcase>
<testcase classname="tests.test_b" name="test_six"><error message="no fixture">x</error></testcase>
</testsuite></testsuites>"""


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "outside"))
    import parts
    import results

    found = {"PARTS": parts.PARTS, "summary": results.summary}
    for name in ("parts", "results"):
        del sys.modules[name]
    return found


def test_skips_are_counted_with_their_reasons(outside: dict[str, Any], tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(REPORT)
    assert outside["summary"](report) == {
        "passed": 3,
        "suites": {"TestStore": 2, "test_b": 1},
        "skipped": [{"test": "test_b.test_four", "reason": "needs a key"}],
        "failed": ["test_b.test_five", "test_b.test_six"],
    }


def test_every_part_has_its_files_and_pins_what_it_shows(outside: dict[str, Any]) -> None:
    for part in outside["PARTS"]:
        pinned = part.constraints.read_text(encoding="utf-8").lower()
        assert all(f"{name}==" in pinned for name in part.shown), part.name
        assert list((part.folder / "tests").glob("test_*.py")), part.name
        for package in part.packages:
            assert (package / "pyproject.toml").exists(), package
            assert (package / "README.md").exists(), package
        assert all(file.exists() for file in part.requirements), part.name
