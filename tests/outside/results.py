"""What tests said: counts by suite, and every skip with its reason."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path
from typing import Any


def summary(report: Path) -> dict[str, Any]:
    """Of pytest's JUnit file: passed by test class or file, skipped and failed tests with what they said."""
    passed: Counter[str] = Counter()
    skipped: list[dict[str, str]] = []
    failed: list[str] = []
    for case in ElementTree.parse(report).getroot().iter("testcase"):  # noqa: S314 - pytest's own file
        suite = case.get("classname", "").rpartition(".")[2]
        test = f"{suite}.{case.get('name')}"
        if case.find("failure") is not None or case.find("error") is not None:
            failed.append(test)
        elif (skip := case.find("skipped")) is not None:
            skipped.append({"test": test, "reason": skip.get("message", "")})
        else:
            passed[suite] += 1
    return {
        "passed": passed.total(),
        "suites": dict(sorted(passed.items())),
        "skipped": skipped,
        "failed": failed,
    }
