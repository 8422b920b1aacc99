"""Backups by schedule: when one is due, which stay, and that a failure is told once."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from tercet.index.errors import DamagedIndexError
from tercet.service.copies.schedule import BackupSchedule


class Backups:
    """Those of two collections, in memory; `broken` cannot be backed up."""

    def __init__(self) -> None:
        self.ids: dict[str, list[str]] = {"notes": ["1"]}
        self.age_seconds = {"notes": 50.0}

    def ages(self) -> list[tuple[str, float]]:
        return list(self.age_seconds.items())

    def make(self, name: str) -> Any:
        if name == "broken":
            raise DamagedIndexError("segment 3 is damaged; restore it")
        kept = self.ids.setdefault(name, [])
        kept.insert(0, str(len(kept) + 1))
        self.age_seconds[name] = 0.0
        return SimpleNamespace(id=kept[0], documents=1)

    def list(self, name: str) -> list[Any]:
        return [SimpleNamespace(id=id) for id in self.ids[name]]

    def delete(self, name: str, id: str) -> None:
        self.ids[name].remove(id)


def test_what_is_due_is_backed_up_and_the_newest_stay(caplog: pytest.LogCaptureFixture) -> None:
    backups = Backups()
    schedule = BackupSchedule(backups, every_seconds=100, keep=2)  # type: ignore[arg-type]
    names = SimpleNamespace(names=lambda: ["broken", "new", "notes"])
    with caplog.at_level(logging.INFO, "tercet"):
        for age in (50.0, 100.0, 200.0):
            backups.age_seconds["notes"] = age
            schedule.look(names)
    assert backups.ids == {"notes": ["3", "2"], "new": ["1"]}
    assert schedule.failures() == [("broken", 3)]
    errors = [each.getMessage() for each in caplog.records if each.levelno == logging.ERROR]
    assert errors == ["collection broken is not backed up now: segment 3 is damaged; restore it"]
