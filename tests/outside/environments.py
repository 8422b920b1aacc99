"""An environment for each package: the wheels that are built here, and exact versions of the rest."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

from parts import Part


class Environment:
    """The virtual environment of one part."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def python(self) -> str:
        """Its interpreter."""
        return str(self.folder / "bin" / "python")

    def install(self, part: Part, wheels: Path, *, renew: bool) -> None:
        """Makes it as the part's constraints say, unless it is so already; its wheels are always new.

        renew: with the newest versions that fit, which the constraints then say.
        """
        own = [str(wheel) for package in part.packages for wheel in _built(package, wheels)]
        wanted = [f"{wheel}[test]" if wheel == own[-1] and part.tested else wheel for wheel in own]
        wanted += [argument for file in part.requirements for argument in ("--requirement", str(file))]
        if renew:
            self._make()
            self._pip(*wanted)
            part.constraints.write_text(self._frozen(), encoding="utf-8")
        sources = [part.constraints, *part.requirements, *(one / "pyproject.toml" for one in part.packages)]
        state = hashlib.sha256(b"\0".join(file.read_bytes() for file in sources)).hexdigest()
        marker = self.folder / "installed"
        if not marker.exists() or marker.read_text() != state:
            if not renew:
                self._make()
            self._pip("--constraint", str(part.constraints), *wanted)
        else:
            self._pip("--force-reinstall", "--no-deps", *own)
        marker.write_text(state)

    def versions(self) -> dict[str, str]:
        """Of every package that is installed."""
        listed = subprocess.run(
            [self.python, "-m", "pip", "list", "--format", "freeze", "--disable-pip-version-check"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        return dict(line.split("==") for line in listed.splitlines() if "==" in line)

    def _frozen(self) -> str:
        """Exact versions of what came from an index."""
        lines = (f"{name}=={version}\n" for name, version in self.versions().items() if "tercet" not in name)
        return "# Made by tests/outside/run.py --renew.\n" + "".join(sorted(lines, key=str.lower))

    def _make(self) -> None:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(self.folder)], check=True)

    def _pip(self, *arguments: str) -> None:
        subprocess.run(
            [self.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments],
            check=True,
        )


def _built(package: Path, wheels: Path) -> list[Path]:
    """The wheel of a package, built anew."""
    place = wheels / package.name
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"),
            *("--wheel-dir", str(place), str(package)),
        ],
        check=True,
    )
    return sorted(place.glob("*.whl"))
