"""Whether pods are confined."""

from __future__ import annotations

from tests.deploy.kubernetes.manifests import Document, pods

USER = 10001
WRITTEN = {"/data", "/var/cache/tercet", "/tmp"}  # noqa: S108 - in a container


def hardening_problems(found: list[Document]) -> list[str]:
    """What a pod may not be: root, able to write to its image, without bounds, or with rights that it does
    not need.
    """
    problems = []
    for name, template in pods(found):
        spec = template["spec"]
        wanted = {"runAsNonRoot": True, "runAsUser": USER, "runAsGroup": USER, "fsGroup": USER}
        context = spec.get("securityContext", {})
        if wanted.items() - {key: context.get(key) for key in wanted}.items():
            problems.append(f"{name}: runs as another user")
        if context.get("seccompProfile") != {"type": "RuntimeDefault"}:
            problems.append(f"{name}: without seccomp's profile")
        if spec.get("automountServiceAccountToken") is not False and not name.endswith(" head"):
            problems.append(f"{name}: has a token of Kubernetes' API")
        if spec.get("enableServiceLinks") is not False:
            problems.append(f"{name}: variables of Services could be taken for settings")
        for container in spec["containers"]:
            where = f"{name}, {container['name']}"
            if container.get("securityContext") != {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }:
                problems.append(f"{where}: is not confined")
            resources = container.get("resources", {})
            problems += [
                f"{where}: no {bound} of cpu and memory"
                for bound in ("requests", "limits")
                if not {"cpu", "memory"} <= set(resources.get(bound, ()))
            ]
            if resources.get("limits", {}).get("memory") != resources.get("requests", {}).get("memory"):
                problems.append(f"{where}: may be killed for memory that it was not promised")
            written = {
                mount["mountPath"] for mount in container.get("volumeMounts", ()) if not mount.get("readOnly")
            }
            missing = WRITTEN - written
            if missing:
                problems.append(f"{where}: cannot write to {sorted(missing)}")
            if "startupProbe" not in container:
                problems.append(f"{where}: no startupProbe")
    return problems
