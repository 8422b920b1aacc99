"""The images built for real and started, on a machine without a container engine.

buildah builds them without a daemon; a Debian from debootstrap stands in for the Python image, which needs no
registry. What is started sees the image's root read-only, as its own user, with volumes where it may write.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.images, pytest.mark.network, pytest.mark.timeout(3600)]

BASE = "docker.io/library/python:3.11-slim-bookworm"
BASE_PACKAGES = "python3,python3-venv,python3-pip,ca-certificates"
USER = 10001
READY_SECONDS = 120.0
GPU_BYTES = 30 << 30  # free at least: 8 GB of packages are stored three times on the way

# Gives the process the image's root read-only, a fresh /tmp and the volumes, then its user and program.
START = """
set -eu
root=$1 data=$2 cache=$3 user=$4; shift 4
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/tmp"
mount --bind "$data" "$root/data"
mount --bind "$cache" "$root/var/cache/tercet"
exec chroot --userspec="$user" "$root" env --chdir=/data --ignore-environment "$@"
"""


def require_tools() -> None:
    """Skips where the images cannot be built."""
    missing = [tool for tool in ("buildah", "debootstrap", "unshare", "chroot") if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}: apt-get install buildah debootstrap")
    if os.geteuid() != 0:
        pytest.skip("needs root: debootstrap and mounts")


@dataclass(frozen=True)
class Buildah:
    """buildah with a storage of its own below a folder."""

    folder: Path

    def __call__(self, *arguments: str) -> str:
        """Runs a command and gives what it prints. Raises AssertionError with the end of what it said."""
        storage = ["--storage-driver", "vfs", "--root", f"{self.folder}/storage"]
        done = subprocess.run(
            ["buildah", *storage, "--runroot", f"{self.folder}/run", *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"buildah {arguments[0]}: {done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done.stdout

    def build(self, dockerfile: Path, context: Path, tag: str) -> None:
        """Builds an image from a Dockerfile as it is, but for the base, whose digest the stand-in has not."""
        self(
            *("bud", "--isolation", "chroot", "--pull-never", "--format", "docker"),
            *("--build-arg", f"PYTHON={BASE}", "--file", str(dockerfile), "--tag", tag),
            *pip_volumes(self.folder),
            str(context),
        )

    def size(self, tag: str) -> str:
        """What the image takes, such as 887 MB."""
        (image,) = json.loads(self("images", "--json", tag))
        return str(image["size"])


def pip_volumes(folder: Path) -> list[str]:
    """Volumes that give the build this machine's configuration of pip, and the folders that it names."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    ).stdout
    entries = {
        name.rpartition(".")[2]: value.strip("'")
        for name, _, value in (line.partition("=") for line in listed.splitlines())
    }
    configuration = folder / "pip.conf"
    lines = [f"{name} = {value}" for name, value in entries.items()]
    configuration.write_text("\n".join(["[global]", *lines]), encoding="utf-8")
    named = {Path(word.removeprefix("file://")) for value in entries.values() for word in value.split()}
    # The pages of an index in a folder refer to files beside that folder.
    found = {path.parent if path.name == "simple" else path for path in named if path.is_absolute()}
    volumes = [f"{path}:{path}:ro" for path in sorted(found) if path.exists()]
    return [f"--volume={volume}" for volume in (f"{configuration}:/etc/pip.conf:ro", *volumes)]


@pytest.fixture(scope="module")
def buildah(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Buildah]:
    """buildah with a stand-in for the Python image, and everything removed at the end."""
    require_tools()
    folder = tmp_path_factory.mktemp("images")
    command = Buildah(folder)
    debian = folder / "debian"
    subprocess.run(
        ["debootstrap", "--variant=minbase", f"--include={BASE_PACKAGES}", "bookworm", str(debian)],
        check=True,
        capture_output=True,
    )
    for name in ("python", "python3"):
        (debian / "usr/local/bin" / name).symlink_to("/usr/bin/python3")
    container = command("from", "scratch").strip()
    command("copy", "--quiet", container, str(debian), "/")
    command("config", "--env", "PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin", container)
    command("commit", "--quiet", "--rm", container, BASE)
    shutil.rmtree(debian)
    yield command
    command("rm", "--all")
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def build(buildah: Buildah, root: Path, pytestconfig: pytest.Config) -> Callable[[str, str], str]:
    """Builds an image, prints its size and how long that took, and gives its name."""

    def build(dockerfile: str, tag: str) -> str:
        started = time.monotonic()
        buildah.build(root / "docker" / dockerfile, root, tag)
        line = f"{tag}: {buildah.size(tag)}, built in {time.monotonic() - started:.0f} s"
        with pytestconfig.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
            pytestconfig.get_terminal_writer().line(f"\n{line}")
        return tag

    return build


@pytest.fixture(scope="module")
def cpu_image(build: Callable[[str, str], str]) -> str:
    """The CPU image's name."""
    return build("Dockerfile", "tercet:cpu")


@dataclass(frozen=True)
class Started:
    """A container's process, a client of it, and the host's folders of its volumes."""

    process: subprocess.Popen[bytes]
    client: httpx.Client
    data: Path
    cache: Path
    root: Path

    def wait_ready(self) -> None:
        """Raises AssertionError where the server ends or does not become ready."""
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            assert self.process.poll() is None, "the container ended"
            try:
                if self.client.get("/ready").status_code == httpx.codes.OK:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.2)
        raise AssertionError("the container is not ready")


@pytest.fixture
def start(buildah: Buildah, tmp_path: Path) -> Iterator[Callable[..., Started]]:
    """Starts an image as an engine would: its entrypoint, command, environment and user, a read-only root."""
    running: list[Started] = []

    def start(image: str, keys: str = "", **variables: str) -> Started:
        container = buildah("from", "--pull-never", image).strip()
        root = Path(buildah("mount", container).strip())
        configured = json.loads(buildah("inspect", "--type", "image", image))["Docker"]["config"]
        data, cache = tmp_path / "data", tmp_path / "cache"
        shutil.copytree(root / "data", data)  # as Docker fills a new volume
        cache.mkdir()  # empty, as Kubernetes mounts it
        if keys:
            (data / "keys").write_text(keys)
        for path in (data, *data.iterdir(), cache):
            os.chown(path, USER, USER)
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        environment = [*configured["Env"], f"TERCET_PORT={port}", "TERCET_HOST=127.0.0.1"]
        environment += [f"{name}={value}" for name, value in variables.items()]
        program = [*configured["Entrypoint"], *configured["Cmd"]]
        arguments = [str(root), str(data), str(cache), configured["User"], *environment, *program]
        process = subprocess.Popen(["unshare", "--mount", "/bin/sh", "-c", START, "start", *arguments])
        client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30)
        running.append(Started(process, client, data, cache, root))
        return running[-1]

    yield start
    for each in running:
        each.client.close()
        each.process.kill()
        each.process.wait()


def built_collection(server: Started, source: Path) -> dict[str, Any]:
    """The job that built the collection `demo` from a copy of the source."""
    shutil.copy(source, server.data / "sources")
    job = server.client.post("/collections/demo/jobs", json={"source": source.name}).json()
    while job["state"] in ("queued", "running"):
        time.sleep(0.2)
        job = server.client.get(f"/jobs/{job['id']}").json()
    return dict(job)


def status_of(process: subprocess.Popen[bytes]) -> dict[str, list[str]]:
    """The kernel's account of a process, by field."""
    lines = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8").splitlines()
    return {name: value.split() for name, _, value in (line.partition(":") for line in lines)}


def test_the_cpu_image_serves_as_its_user_from_a_read_only_root(
    cpu_image: str, start: Callable[..., Started], root: Path
) -> None:
    server = start(cpu_image, TERCET_DRAIN_SECONDS="0")
    server.wait_ready()
    status = status_of(server.process)
    assert set(status["Uid"]) == set(status["Gid"]) == {str(USER)}
    assert set(status["CapEff"]) == {"0" * 16}
    inside = Path(f"/proc/{server.process.pid}/root")
    with pytest.raises(OSError, match="Read-only file system"):
        (inside / "opt/tercet/docker/written").touch()

    job = built_collection(server, root / "examples" / "demo" / "corpus.jsonl")
    assert job["state"] == "succeeded", job
    body = {"collection": "demo", "query": "why does dough rise?"}
    assert server.client.post("/search", json=body).json()["hits"][0]["id"] == "en-bakers-yeast"

    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(60) == 0


def test_keys_come_from_a_file_and_parquet_can_be_read(
    cpu_image: str, start: Callable[..., Started], tmp_path: Path
) -> None:
    import pyarrow.parquet

    server = start(cpu_image, keys="inside\n", TERCET_API_KEYS_FILE="/data/keys")
    server.wait_ready()
    assert server.client.get("/collections").status_code == httpx.codes.UNAUTHORIZED
    server.client.headers["Authorization"] = "Bearer inside"
    pyarrow.parquet.write_table(
        pyarrow.table({"id": ["a"], "text": ["Yeast makes dough rise."]}), tmp_path / "x.parquet"
    )
    assert built_collection(server, tmp_path / "x.parquet")["state"] == "succeeded"


def test_ray_starts_in_its_image_without_root(
    cpu_image: str, buildah: Buildah, build: Callable[[str, str], str]
) -> None:
    """A head as KubeRay starts it: by a shell, as the image's user."""
    assert cpu_image == "tercet:cpu"
    container = buildah("from", "--pull-never", build("Dockerfile.ray", "tercet:ray")).strip()
    line = "ray --version && tercet --version && python -c 'import ray.serve, ray.data'"
    done = buildah("run", "--isolation", "chroot", container, "--", "/bin/bash", "-c", line)
    assert "ray, version" in done
    assert "tercet" in done


def test_the_gpu_image_installs_and_warms_up_without_a_gpu(
    buildah: Buildah, build: Callable[[str, str], str]
) -> None:
    free = shutil.disk_usage(buildah.folder).free
    if free < GPU_BYTES:
        pytest.skip(f"needs {GPU_BYTES:,} bytes of disk, {free:,} are free")
    build("Dockerfile.gpu", "tercet:gpu")
