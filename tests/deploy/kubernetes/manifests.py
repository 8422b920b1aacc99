"""Manifests as Kustomize renders them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

FOLDER = Path(__file__).resolve().parents[3] / "deploy" / "kubernetes"
OVERLAYS = ("single", "gpu-encoders", "sharded", "replicated", "ray")
WORKLOADS = ("Deployment", "StatefulSet")

Document = dict[str, Any]


def rendered(folder: Path) -> str:
    """What `kubectl apply -k` would send."""
    if shutil.which("kubectl") is None:
        pytest.skip("needs kubectl, whose kustomize renders the manifests")
    done = subprocess.run(["kubectl", "kustomize", str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def documents(text: str) -> list[Document]:
    return [each for each in yaml.safe_load_all(text) if each]


def of_kind(found: list[Document], *kinds: str) -> list[Document]:
    return [each for each in found if each["kind"] in kinds]


def named(document: Document) -> str:
    return f"{document['kind']} {document['metadata']['name']}"


def pods(found: list[Document]) -> Iterator[tuple[str, Document]]:
    """The pod template of each workload, those of Ray's cluster among them."""
    for each in of_kind(found, *WORKLOADS):
        yield named(each), each["spec"]["template"]
    for each in of_kind(found, "RayService"):
        cluster = each["spec"]["rayClusterConfig"]
        for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
            yield f"{named(each)} {group.get('groupName', 'head')}", group["template"]
