"""Every port that something listens on, as docs/secure.md lists them: against compose files, manifests
and Dockerfiles.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.deploy.kubernetes.manifests import FOLDER, OVERLAYS, documents, of_kind, pods, rendered
from tests.docker.conftest import parse
from tests.docker.test_compose import interpolate

ROOT = FOLDER.parents[1]
ROW = re.compile(r"^\| `([\w./-]+)` \| ([\w, -]+) \| ([\d, -]+) \| .* \|$", re.M)
IMAGES = {"tercet:cpu": "Dockerfile", "tercet:gpu": "Dockerfile.gpu"}
ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)")

Listening = tuple[str, str, str]
"""A deployment, a process and a port, or a range of ports."""


@pytest.fixture(scope="module")
def listed() -> set[Listening]:
    text = (ROOT / "docs" / "secure.md").read_text(encoding="utf-8")
    section = text.split("\n## Ports\n")[1].split("\n## ")[0]
    rows = ROW.findall(section)
    assert len(rows) == section.count("\n| `"), "a row that cannot be read"
    return {
        (where, who, port)
        for where, whose, ports in rows
        for who in whose.split(", ")
        for port in ports.split(", ")
    }


def of(listed: set[Listening], deployment: str) -> set[Listening]:
    return {each for each in listed if each[0] == deployment}


@pytest.mark.parametrize("path", ["docker-compose.yml", "deploy/folder/compose.yml"])
def test_ports_of_containers_are_listed(listed: set[Listening], path: str) -> None:
    composed = interpolate(yaml.safe_load((ROOT / path).read_text(encoding="utf-8")))
    assert of(listed, path) == {
        (path, name, port)
        for name, service in composed["services"].items()
        for port in listening(name, service)
    }
    for service in composed["services"].values():
        for published in service.get("ports", ()):
            address, _, inside = published.split(":")
            assert address == "127.0.0.1"
            assert inside == "8080"


def listening(name: str, service: dict[str, Any]) -> Iterator[str]:
    """Ports of a service: those that its image exposes, or that its health check asks."""
    if service["image"] not in IMAGES:
        yield from ADDRESS.findall(" ".join(service["healthcheck"]["test"]))
    elif service.get("command", ["serve"])[0] in ("serve", "encoder"):
        yield parse(ROOT / "docker" / IMAGES[service["image"]]).last("EXPOSE").value
    else:
        assert service["healthcheck"] == {"disable": True}, f"{name} is no server"


@pytest.mark.slow
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_ports_of_pods_are_listed(listed: set[Listening], overlay: str) -> None:
    found = documents(rendered(FOLDER / overlay))
    assert of(listed, overlay) == set(ports_of(overlay, found))


def ports_of(overlay: str, found: list[dict[str, Any]]) -> Iterator[Listening]:
    for name, template in pods(found):
        (container,) = template["spec"]["containers"]
        process = container["name"] if name.startswith("RayService") else name.split()[-1]
        for port in container["ports"]:
            yield overlay, process, str(port["containerPort"])
        for sysctl in template["spec"]["securityContext"].get("sysctls", ()):
            assert sysctl["name"] == "net.ipv4.ip_local_port_range"
            yield overlay, process, sysctl["value"].replace(" ", "-")
        variables = {each["name"]: each.get("value") for each in container.get("env", ())}
        yield from ((overlay, process, port) for port in named_ports(variables))
    for each in of_kind(found, "RayService"):
        cluster = each["spec"]["rayClusterConfig"]
        for group, process in (
            (cluster["headGroupSpec"], "ray-head"),
            *((group, "ray-worker") for group in cluster["workerGroupSpecs"]),
        ):
            yield from ((overlay, process, port) for port in named_ports(group["rayStartParams"]))


def named_ports(values: dict[str, str]) -> Iterator[str]:
    """What is named as a port, and as the lowest and highest of several."""
    for name, value in values.items():
        word = name.lower().replace("_", "-")
        if not word.endswith("port") or re.search(r"\bmax\b", word):
            continue
        highest = re.sub(r"min", "max", name) if "min" in name else name.replace("MIN", "MAX")
        yield f"{value}-{values[highest]}" if re.search(r"\bmin\b", word) else value


@pytest.mark.slow
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_policies_open_listed_ports_alone(listed: set[Listening], overlay: str) -> None:
    ports = {port for _, _, port in of(listed, overlay)}
    for each in of_kind(documents(rendered(FOLDER / overlay)), "NetworkPolicy"):
        for rule in each["spec"].get("ingress", ()):
            for port in rule.get("ports", ()):
                assert port["port"] == "http" or str(port["port"]) in ports


def test_images_expose_listed_ports_alone(listed: set[Listening]) -> None:
    exposed = {parse(path).last("EXPOSE").value for path in sorted((ROOT / "docker").glob("Dockerfile*"))}
    assert exposed == {"8080", "8000"}
    assert exposed <= {port for _, _, port in listed}


def test_a_port_that_is_not_listed_is_found(listed: set[Listening]) -> None:
    text = rendered(FOLDER / "ray").replace(
        'dashboard-agent-grpc-port: "52366"', 'dashboard-agent-grpc-port: "52399"'
    )
    assert of(listed, "ray") != set(ports_of("ray", documents(text)))
