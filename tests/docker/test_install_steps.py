"""The CPU image rehearsed without an engine: its own RUN, COPY, ENV and CMD lines in a clean folder.

Absolute paths of the image move below a temporary folder. Not run are the lines that create users, which
would change this machine. Package versions of the GPU image are only looked up: they are several GB.
"""

import json
import os
import shutil
import signal
import string
import subprocess
import sys
import time
import tomllib
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.ports import held_port

# Folders that the Dockerfiles use.
FOLDERS = ("/opt/tercet", "/src", "/data", "/var/cache/tercet", "/tmp/warm")  # noqa: S108 - in the image

# From this machine, nothing but what finds and fetches packages.
KEPT = ("PIP_", "LANG", "LC_", "HTTP", "HTTPS", "http", "https", "no_proxy", "NO_PROXY", "SSL_")

# Python compiles what the tests import, not pip all there is; kernels are compiled for one variant.
SHORTER = {"PIP_NO_COMPILE": "1", "KERNEL_VARIANTS": "plain"}
LEFT_OUT = ("PIP_NO_CACHE_DIR", "PYTHONDONTWRITEBYTECODE")

READY_SECONDS = 240.0
SERVING_BYTES = (
    500_000_000  # of packages without bytecode and without what the extras parquet and files bring
)


@dataclass
class Rehearsal:
    """A Dockerfile's instructions carried out below `folder`."""

    folder: Path
    context: Path
    environment: dict[str, str] = field(default_factory=dict)
    working: Path = Path()

    def move(self, text: str) -> str:
        """The text with every path of the image moved below the folder."""
        for path in FOLDERS:
            text = text.replace(path, f"{self.folder}{path}")
        return text

    def start_stage(self) -> None:
        kept = {name: value for name, value in os.environ.items() if name.startswith(KEPT)}
        python = Path(sys.executable).resolve().parent
        self.environment = {**kept, "PATH": f"{python}:/usr/bin:/bin", "HOME": str(self.folder), **SHORTER}
        self.working = self.folder

    def carry_out(self, keyword: str, value: str, words: list[str]) -> None:
        """One instruction. Raises AssertionError with the output of a RUN that fails."""
        if keyword == "FROM":
            self.start_stage()
        elif keyword == "ENV":
            for word in words:
                name, _, text = word.partition("=")
                if name not in LEFT_OUT:
                    self.environment[name] = self.move(string.Template(text).substitute(self.environment))
        elif keyword == "WORKDIR":
            self.working = Path(self.move(value))
            self.working.mkdir(parents=True, exist_ok=True)
        elif keyword == "COPY" and not value.startswith("--from=build "):
            self._copy(words[:-1], words[-1])
        elif keyword == "RUN" and "useradd" not in value:
            self.run(self.move(value))

    def run(self, command: str) -> None:
        """A shell command as the image would run it."""
        result = subprocess.run(
            ["/bin/sh", "-ec", command],
            cwd=self.working,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"

    def _copy(self, sources: list[str], target: str) -> None:
        destination = self.working / self.move(target)
        for source in sources:
            path = self.context / source
            if path.is_dir():
                ignore = shutil.ignore_patterns("__pycache__", "*.py[cod]")
                shutil.copytree(path, destination, ignore=ignore, dirs_exist_ok=True)
            elif target.endswith("/"):
                destination.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, destination)
            else:
                destination.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, destination)


@pytest.fixture(scope="module")
def image(cpu: Any, root: Path, tmp_path_factory: pytest.TempPathFactory) -> Rehearsal:
    rehearsal = Rehearsal(tmp_path_factory.mktemp("image"), root)
    for instruction in cpu.instructions:
        words = instruction.words if instruction.keyword in {"ENV", "COPY"} else []
        rehearsal.carry_out(instruction.keyword, instruction.value, words)
    return rehearsal


@pytest.fixture
def server(image: Rehearsal, cpu: Any) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The image's entrypoint and command, on a free port."""
    command = [*cpu.last("ENTRYPOINT").words, *cpu.last("CMD").words]
    with held_port() as port:
        image.environment["TERCET_PORT"] = str(port)
        with subprocess.Popen(command, cwd=image.working, env=image.environment) as process:
            yield process, port
            process.kill()


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.timeout(900)
def test_the_installed_image_holds_the_lock_and_no_torch(image: Rehearsal, root: Path) -> None:
    lock = dict(
        line.lower().replace("_", "-").split("==")
        for line in (root / "constraints.txt").read_text(encoding="utf-8").splitlines()
        if "==" in line
    )
    listing = subprocess.run(
        [
            f"{image.folder}/opt/tercet/venv/bin/python",
            "-c",
            "import importlib.metadata, json\n"
            "print(json.dumps({d.name: d.version for d in importlib.metadata.distributions()}))",
        ],
        cwd=image.working,
        env=image.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    installed = {name.lower().replace("_", "-"): v for name, v in json.loads(listing.stdout).items()}
    assert installed.pop("tercet")
    assert not {"torch", "transformers", "pip", "bm25s", "ir-measures", "scipy"} & set(installed)
    assert {name: version for name, version in installed.items() if lock.get(name) != version} == {}


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.timeout(900)
def test_what_serving_needs_stays_light(image: Rehearsal) -> None:
    (packages,) = (image.folder / "opt/tercet/venv/lib").glob("python3.*/site-packages")
    files = [path for path in packages.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    left_out = (
        *("pyarrow", "pypdfium2", "selectolax", "semantic_text_splitter", "watchfiles"),
        "tercet/checkpoints",
    )
    serving = [path for path in files if not path.relative_to(packages).as_posix().startswith(left_out)]
    assert len(serving) < len(files), "Parquet is in the image"
    assert sum(path.lstat().st_size for path in serving) <= SERVING_BYTES


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.timeout(900)
def test_the_wheel_runs_the_demo_far_from_the_repository(image: Rehearsal, tmp_path: Path) -> None:
    demo = subprocess.run(
        ["tercet", "demo", "--no-serve", "--data", str(tmp_path / "data")],
        cwd=tmp_path,
        env=image.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert demo.returncode == 0, demo.stderr
    assert "en-bakers-yeast" in demo.stdout
    assert "ko-kimchi" in demo.stdout
    (packages,) = (image.folder / "opt/tercet/venv/lib").glob("python3.*/site-packages")
    assert {path.name for path in (packages / "tercet" / "checkpoints").iterdir()} == {
        "minilm-m3",
        "multi-m3",
    }


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.timeout(900)
def test_the_wheel_installs_one_package(image: Rehearsal) -> None:
    (packages,) = (image.folder / "opt/tercet/venv/lib").glob("python3.*/site-packages")
    (record,) = packages.glob("tercet-*.dist-info/RECORD")
    places = {line.partition("/")[0] for line in record.read_text().splitlines()}
    assert places - {".."} == {"tercet", record.parent.name}


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.timeout(900)
def test_a_script_may_have_modules_of_our_folders_names(image: Rehearsal, tmp_path: Path) -> None:
    (tmp_path / "models.py").write_text("MINE = True\n")
    (tmp_path / "index").mkdir()
    (tmp_path / "index" / "__init__.py").write_text("MINE = True\n")
    script = tmp_path / "script.py"
    script.write_text(
        "import index, models, tercet.index.collection, tercet.models.loader, tercet.service.app\n"
        "assert index.MINE and models.MINE\n"
    )
    done = subprocess.run(
        ["python", str(script)],
        cwd=tmp_path,
        env=image.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def wait_for(check: list[str], image: Rehearsal, process: subprocess.Popen[bytes]) -> None:
    """Repeats a health check until it passes. Raises AssertionError if the server ends or never passes it."""
    deadline = time.monotonic() + READY_SECONDS
    while subprocess.run(check, env=image.environment, capture_output=True, check=False).returncode:
        assert process.poll() is None, "the server ended"
        assert time.monotonic() < deadline, f"{check} does not pass"
        time.sleep(0.2)


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.timeout(900)
def test_it_serves_reports_health_and_stops_on_sigterm(
    image: Rehearsal, cpu: Any, server: tuple[subprocess.Popen[bytes], int]
) -> None:
    process, port = server
    check = json.loads(image.move(cpu.last("HEALTHCHECK").value.split("CMD", 1)[1].strip()))
    wait_for(check, image, process)
    wait_for([*check, "/ready"], image, process)
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/embed",
        data=json.dumps({"inputs": "hello"}).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=READY_SECONDS) as answer:  # noqa: S310
        assert len(json.load(answer)["embeddings"]) == 1
    process.send_signal(signal.SIGTERM)
    assert process.wait(READY_SECONDS) == 0


@pytest.mark.slow
@pytest.mark.network
def test_the_locked_packages_of_the_gpu_image_are_published(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lock = dict(
        line.split("==")
        for line in (root / "constraints.txt").read_text(encoding="utf-8").splitlines()
        if "==" in line
    )
    for name in project["optional-dependencies"]["gpu"]:
        assert name in lock, f"constraints.txt lacks {name}"
        result = subprocess.run(
            [sys.executable, "-m", "pip", "index", "versions", name],
            capture_output=True,
            text=True,
            check=False,
        )
        if result.returncode != 0:
            pytest.skip(f"the package index does not list versions of {name}")
        versions = result.stdout.split("Available versions:")[1].splitlines()[0].split(",")
        assert lock[name] in {version.strip().partition("+")[0] for version in versions}, name
