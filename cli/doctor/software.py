"""Python, Tercet, and the packages that are there."""

from __future__ import annotations

import platform
import re
from collections import defaultdict
from collections.abc import Iterator
from importlib import metadata

from tercet.cli.doctor.findings import Finding

TOPIC = "software"
REQUIREMENT = re.compile(r"([A-Za-z0-9_.-]+).*?extra == ['\"](\w+)['\"]")
FOR_DEVELOPERS = {"dev"}
# Two builds of one library, of which one overwrites files of the other.
EITHER = (("onnxruntime", "onnxruntime-gpu"), ("faiss-cpu", "faiss-gpu"))


def findings() -> Iterator[Finding]:
    """What is installed, and what is missing or too much."""
    yield Finding(
        "ok",
        TOPIC,
        f"tercet {metadata.version('tercet')}, Python {platform.python_version()}, {platform.platform()}",
    )
    for package, other in EITHER:
        if _version(package) and _version(other):
            yield Finding(
                "problem",
                TOPIC,
                f"{package} and {other} are both installed, and overwrite each other's files",
                f"pip uninstall {package} {other}, then install the extra cpu or gpu again",
            )
        elif not (_version(package) or _version(other)):
            yield Finding(
                "problem",
                TOPIC,
                f"neither {package} nor {other} is installed",
                "pip install -c constraints.txt -e '.[cpu]', or '.[gpu]' on a machine with an NVIDIA GPU",
            )
    complete, missing = _extras()
    yield Finding("ok", TOPIC, f"extras that are complete: {', '.join(complete) or 'none'}")
    if missing:
        yield Finding(
            "note",
            TOPIC,
            "extras that are not: "
            + "; ".join(f"{extra} (without {', '.join(lacking)})" for extra, lacking in missing.items()),
        )


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _extras() -> tuple[list[str], dict[str, list[str]]]:
    """The extras of which all packages are there, and what the others lack."""
    packages: dict[str, list[str]] = defaultdict(list)
    for requirement in metadata.requires("tercet") or ():
        if (match := REQUIREMENT.match(requirement)) and match[2] not in FOR_DEVELOPERS:
            packages[match[2]].append(match[1])
    lacking = {
        extra: [name for name in names if _version(name) is None] for extra, names in sorted(packages.items())
    }
    return [extra for extra, names in lacking.items() if not names], {
        extra: names for extra, names in lacking.items() if names
    }
