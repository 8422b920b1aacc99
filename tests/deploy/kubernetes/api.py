"""A server that answers Helm's questions as Kubernetes' API does: what kinds there are, and a few Secrets."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KINDS = {
    "v1": {"configmaps": "ConfigMap", "secrets": "Secret", "services": "Service"},
    "apps/v1": {"statefulsets": "StatefulSet"},
}


def _path(version: str) -> str:
    return f"/apis/{version}" if "/" in version else f"/api/{version}"


def _resources(version: str) -> dict[str, Any]:
    """What kinds a version has."""
    resources = [
        {"name": name, "kind": kind, "namespaced": True, "verbs": ["get", "create"]}
        for name, kind in KINDS[version].items()
    ]
    return {"kind": "APIResourceList", "groupVersion": version, "resources": resources}


def _schemas(version: str) -> dict[str, Any]:
    """That fields are looked at by the server itself."""
    group, _, number = version.rpartition("/")
    parameters = [{"name": "fieldValidation", "in": "query"}]
    return {
        "paths": {
            f"/{name}": {
                "patch": {
                    "parameters": parameters,
                    "x-kubernetes-group-version-kind": {"group": group, "version": number, "kind": kind},
                }
            }
            for name, kind in KINDS[version].items()
        }
    }


APPS = {"name": "apps", "versions": [{"groupVersion": "apps/v1", "version": "v1"}]}
FIXED: dict[str, Any] = {
    "/version": {"major": "1", "minor": "32", "gitVersion": "v1.32.0"},
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {"kind": "APIGroupList", "groups": [APPS]},
    "/openapi/v3": {
        "paths": {_path(each)[1:]: {"serverRelativeURL": f"/openapi/v3{_path(each)}"} for each in KINDS}
    },
    **{_path(each): _resources(each) for each in KINDS},
    **{f"/openapi/v3{_path(each)}": _schemas(each) for each in KINDS},
}


@contextmanager
def kubernetes_api(secrets: Mapping[str, Mapping[str, str]], release: str, namespace: str) -> Iterator[str]:
    """A configuration of kubectl that leads there.

    secrets: of the release, by name, each with its data in base64.
    """
    answers = dict(FIXED)
    for name, data in secrets.items():
        metadata = {
            "name": name,
            "labels": {"app.kubernetes.io/managed-by": "Helm"},
            "annotations": {
                "meta.helm.sh/release-name": release,
                "meta.helm.sh/release-namespace": namespace,
            },
        }
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}
        answers[f"/api/v1/namespaces/{namespace}/secrets/{name}"] = secret

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = answers.get(self.path.partition("?")[0])
            missing = {"kind": "Status", "apiVersion": "v1", "reason": "NotFound", "code": 404}
            body = json.dumps(missing if found is None else found).encode()
            self.send_response(404 if found is None else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        cluster = {"server": f"http://127.0.0.1:{server.server_port}"}
        yield json.dumps(
            {
                "clusters": [{"name": "here", "cluster": cluster}],
                "contexts": [{"name": "here", "context": {"cluster": "here"}}],
                "current-context": "here",
            }
        )
        server.shutdown()
