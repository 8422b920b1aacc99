"""deploy/folder/compose.yml: a server, and what keeps a collection like a folder."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tercet.service.app import create_app
from tercet.service.settings.settings import Settings
from tests.service.conftest import real_server

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "deploy" / "folder" / "compose.yml"
VARIABLE = re.compile(r"\$\{([A-Z0-9_]+):-([^}]*)\}")
NOT_OURS = {"WATCHFILES_FORCE_POLLING"}


@pytest.fixture(scope="module")
def composed() -> dict[str, Any]:
    """The file as with an empty environment."""
    text = FILE.read_text(encoding="utf-8")
    body = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    assert body.count("$") == len(VARIABLE.findall(body)), "a variable without a default"
    return dict(yaml.safe_load(VARIABLE.sub(r"\2", text)))


def test_the_server_is_published_on_this_host_alone_and_asks_for_the_key(composed: dict[str, Any]) -> None:
    server, folder = composed["services"]["tercet"], composed["services"]["folder"]
    assert server["ports"] == ["127.0.0.1:8080:8080"]
    assert "ports" not in folder
    assert composed["secrets"] == {"key": {"file": "./key"}}
    for service in (server, folder):
        assert service["secrets"] == ["key"]
        assert service["environment"]["TERCET_API_KEYS_FILE"] == "/run/secrets/key"
        assert service["environment"]["TERCET_CHECKPOINT"] == "multi-m3", "passages are cut by its tokens"


def test_the_folder_is_only_read_and_waits_for_the_server(composed: dict[str, Any]) -> None:
    folder = composed["services"]["folder"]
    assert folder["volumes"] == ["./documents:/documents:ro"]
    assert folder["depends_on"] == {"tercet": {"condition": "service_healthy"}}
    assert composed["services"]["tercet"]["healthcheck"]["test"][-1] == "/ready"
    assert folder["healthcheck"] == {"disable": True}, "the image's asks a server"
    assert folder["restart"] == "unless-stopped"
    url = folder["command"][folder["command"].index("--url") + 1]
    assert url == "http://tercet:8080"
    assert "tercet" in composed["services"]["tercet"]["environment"]["TERCET_ALLOWED_HOSTS"].split(",")


def test_both_are_hardened_and_may_write_where_the_image_does(composed: dict[str, Any]) -> None:
    image = (ROOT / "docker" / "Dockerfile").read_text(encoding="utf-8")
    assert "HF_HOME=/var/cache/tercet" in image
    for service in composed["services"].values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["build"] == {"context": "../..", "dockerfile": "docker/Dockerfile"}
        written = [*service["tmpfs"], *(volume.split(":")[1] for volume in service["volumes"])]
        assert {"/tmp", "/var/cache/tercet"} <= set(written)  # noqa: S108 - inside a container
    assert "data:/data" in composed["services"]["tercet"]["volumes"]
    assert set(composed["volumes"]) == {"data", "cache"}


def test_its_variables_are_settings(composed: dict[str, Any]) -> None:
    known = {f"TERCET_{name.upper()}" for name in Settings.model_fields} | NOT_OURS
    for service in composed["services"].values():
        assert set(service["environment"]) <= known


@pytest.mark.slow
def test_the_command_makes_the_collection_of_the_folder(
    composed: dict[str, Any], tiny: Any, tmp_path: Path
) -> None:
    """As it is in the file, but for the folder, the address, and that it ends."""
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "tea.md").write_text("# Tea\n\n## Green tea\n\nGreen tea is brewed with hot water.\n")
    key = tmp_path / "key"
    key.write_text("secret\n")
    settings = Settings(data=tmp_path / "data", api_keys="secret")
    with real_server(create_app(settings, tiny)) as url:
        changed = {"/documents": str(folder), "http://tercet:8080": url, "--watch": "--sync"}
        command = [changed.get(word, word) for word in composed["services"]["folder"]["command"]]
        done = subprocess.run(
            [sys.executable, "-c", "from tercet.cli.main import main; main()", *command],
            env={**os.environ, "TERCET_API_KEYS_FILE": str(key)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        asked = {"collection": "docs", "query": "green tea"}
        found = httpx.post(f"{url}/search", json=asked, headers={"Authorization": "Bearer secret"}).json()
    assert [hit["id"] for hit in found["hits"]] == ["tea.md#green-tea"]
