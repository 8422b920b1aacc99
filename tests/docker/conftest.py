"""Reads Dockerfiles into instructions, so that tests work on the files themselves."""

import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Instruction:
    """One instruction of a Dockerfile: its stage counts the FROM lines before it, from 0."""

    stage: int
    keyword: str
    value: str

    @property
    def words(self) -> list[str]:
        """The value's words, from the JSON form or from the shell form."""
        if self.value.startswith("["):
            return list(json.loads(self.value))
        return shlex.split(self.value)


@dataclass(frozen=True)
class Dockerfile:
    """The instructions of one file, in order."""

    path: Path
    instructions: tuple[Instruction, ...]

    def all(self, keyword: str) -> list[Instruction]:
        return [entry for entry in self.instructions if entry.keyword == keyword]

    def last(self, keyword: str) -> Instruction:
        return self.all(keyword)[-1]

    def environment(self) -> dict[str, str]:
        """What ENV sets in the last stage."""
        return dict(
            word.partition("=")[::2]
            for entry in self.all("ENV")
            if entry.stage == self.instructions[-1].stage
            for word in entry.words
        )

    def context_sources(self) -> list[str]:
        """Everything that COPY takes from the build context."""
        return [
            source
            for entry in self.all("COPY")
            if not entry.value.startswith("--from=")
            for source in entry.words[:-1]
        ]


def parse(path: Path) -> Dockerfile:
    """The instructions of a Dockerfile: comments dropped, continued lines joined."""
    lines = (line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#"))
    instructions, stage = [], -1
    for line in re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines():
        if not line.strip():
            continue
        keyword, _, value = line.partition(" ")
        stage += keyword == "FROM"
        instructions.append(Instruction(stage, keyword, value.strip()))
    return Dockerfile(path, tuple(instructions))


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def cpu() -> Dockerfile:
    return parse(ROOT / "docker" / "Dockerfile")


@pytest.fixture(scope="session")
def gpu() -> Dockerfile:
    return parse(ROOT / "docker" / "Dockerfile.gpu")


@pytest.fixture(scope="session")
def ray() -> Dockerfile:
    return parse(ROOT / "docker" / "Dockerfile.ray")


@pytest.fixture(params=["Dockerfile", "Dockerfile.gpu"], scope="session")
def dockerfile(request: pytest.FixtureRequest) -> Dockerfile:
    return parse(ROOT / "docker" / request.param)
