"""Pushes, pulls and followers that are killed at random moments, and what is left each time."""

from __future__ import annotations

import random
import shutil
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from tests.endurance.crashes.processes import answer_of, killed_after
from tests.endurance.snapshots import world

NAMES = ("push", "pull", "follow")
FIRST_SECONDS = 0.3


class Kills:
    """One store, the data root that pushes to it, one that pulls, and one that follows."""

    def __init__(self, folder: Path, url: str, seed: int) -> None:
        self._folder, self._url = folder, url
        self._root = folder / "source" / "collections"
        self._random = random.Random(seed)
        self._states: dict[str | None, int] = {None: 0}
        self._longest = dict.fromkeys(NAMES, FIRST_SECONDS)
        self.counts: Counter[str] = Counter()
        self.problems: list[str] = []

    @property
    def fewest(self) -> int:
        """Kills of that which was killed least often."""
        return min(self.counts[f"{name}: killed"] for name in NAMES)

    def step(self, step: int) -> None:
        """A new state; its push, pull and follower are killed once, looked at, and finished."""
        digest = str(answer_of(lambda: world.write_step(self._root, step)))
        self._states[digest] = step
        allowed = {each for each, number in self._states.items() if number >= step - 1}
        self._kill("push", lambda: world.push_all(self._root, self._url))
        self._look_at_store(allowed)
        done: Any = self._finish("push", lambda: world.push_all(self._root, self._url))
        self._require(done["sent_files"] == done["missing_files"], f"step {step}: sent again: {done}")
        self._require(self._published() == digest, f"step {step}: a push that ended is not the newest")
        for name, work in (("pull", world.pull_all), ("follow", world.follow_all)):
            self._transfer(name, work, digest, allowed)

    def _transfer(
        self, name: str, work: Callable[[Path, str], object], digest: str, allowed: set[str | None]
    ) -> None:
        data = self._folder / name
        (data / "collections").mkdir(parents=True, exist_ok=True)
        self._kill(name, lambda: work(data, self._url))
        state: Any = answer_of(lambda: world.state_of(data))
        self._require(state["digest"] in allowed and not state["problems"], f"killed {name} left {state}")
        self.counts[f"{name}: {'next' if state['digest'] == digest else 'former'} state at the kill"] += 1
        done: Any = self._finish(name, lambda: work(data, self._url))
        self._require(done["digest"] == digest and not done["problems"], f"finished {name} gave {done}")
        if name == "follow":
            self._require(done["served"] == digest, f"served after {name}: {done}")

    def _look_at_store(self, allowed: set[str | None]) -> None:
        found = self._published()
        self._require(found in allowed, f"a killed push left {found}")
        new = self._states.get(found, -1) == max(self._states.values())
        self.counts[f"push: {'published' if new else 'not published'} at the kill"] += 1

    def _published(self) -> str | None:
        scratch = self._folder / "scratch"
        shutil.rmtree(scratch, ignore_errors=True)
        (scratch / "collections").mkdir(parents=True)
        found: Any = answer_of(lambda: world.published(self._url, scratch))
        self._require(not found["problems"], f"published: {found['problems']}")
        digest: str | None = found["digest"]
        return digest

    def _kill(self, name: str, work: Callable[[], object]) -> None:
        seconds = self._random.uniform(0, 1.2 * self._longest[name])
        alive = killed_after(seconds, lambda _: work(), lambda _: None)
        self.counts[f"{name}: {'killed' if alive else 'ended before'}"] += 1

    def _finish(self, name: str, work: Callable[[], object]) -> Any:
        done: Any = answer_of(work)
        self._longest[name] += (done["seconds"] - self._longest[name]) / 4
        return done

    def _require(self, holds: bool, problem: str) -> None:
        if not holds:
            self.problems.append(problem)


def race(folder: Path, url: str, publishers: int) -> dict[str, object]:
    """So many data roots of one collection with different contents, pushed at the same moment."""
    roots = [folder / f"racer-{number}" / "collections" for number in range(publishers)]
    digests = [answer_of(partial(world.write_step, root, number)) for number, root in enumerate(roots)]
    began = time.time() + 1.0
    answers = _together([partial(_push_at, began, root, url) for root in roots])
    numbers = sorted(each["number"] for each in answers)
    scratch = folder / "of-race"
    (scratch / "collections").mkdir(parents=True)
    newest: Any = answer_of(lambda: world.published(url, scratch))
    last = next(n for n, each in enumerate(answers) if each["number"] == publishers)
    sound = newest["digest"] == digests[last] and not newest["problems"]
    return {
        "publishers": publishers,
        "numbers_given_once": numbers == list(range(1, publishers + 1)),
        "newest_is_that_of_its_winner": sound,
    }


def _push_at(began: float, root: Path, url: str) -> dict[str, object]:
    time.sleep(max(0.0, began - time.time()))
    return world.push_all(root, url)


def _together(works: list[Callable[[], object]]) -> list[Any]:
    """What each gives in a forked process of its own, all at the same time."""
    with ThreadPoolExecutor(len(works)) as threads:
        return list(threads.map(answer_of, works))
