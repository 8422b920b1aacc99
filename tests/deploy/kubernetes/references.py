"""Whether what manifests name is there."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator

import yaml

from tercet.cluster.objects.errors import StoreAddressError
from tercet.cluster.objects.opening import open_store
from tercet.service.settings.settings import Settings
from tests.deploy.kubernetes.manifests import WORKLOADS, Document, named, of_kind, pods

SECRETS = {"tercet-keys": {"keys.jsonl", "internal", "metrics"}}
"""What docs/kubernetes.md has one make."""
VARIABLES = {"tercet-store"}
"""Secrets with variables of object stores, which it says may be there."""
GIVEN = re.compile(r"\$\(([^)]*)\)")
ADDRESS = re.compile(r"http://([a-z0-9.-]+):(\d+)")


def reference_problems(found: list[Document]) -> list[str]:
    """Names that lead nowhere: Services, ports, volumes, Secrets, ConfigMaps, workloads, labels, settings,
    addresses.
    """
    return [
        *_pods_problems(found),
        *_selector_problems(found),
        *_monitor_problems(found),
        *_target_problems(found),
        *_setting_problems(found),
    ]


def _pods_problems(found: list[Document]) -> Iterator[str]:
    configs = {each["metadata"]["name"] for each in of_kind(found, "ConfigMap")}
    services = {each["metadata"]["name"]: each for each in of_kind(found, "Service")}
    for each in of_kind(found, "StatefulSet"):
        if each["spec"]["serviceName"] not in services:
            yield f"{named(each)}: no Service {each['spec']['serviceName']}"
    claims = {
        named(each): {claim["metadata"]["name"] for claim in each["spec"].get("volumeClaimTemplates", ())}
        for each in of_kind(found, *WORKLOADS)
    }
    for name, template in pods(found):
        spec = template["spec"]
        volumes = {volume["name"] for volume in spec.get("volumes", ())}
        mounted = {mount["name"] for container in spec["containers"] for mount in container["volumeMounts"]}
        if mounted != volumes | claims.get(name, set()):
            yield f"{name}: mounts {sorted(mounted)} of {sorted(volumes | claims.get(name, set()))}"
        for volume in spec.get("volumes", ()):
            yield from _secret_problems(name, volume.get("secret"))
            if volume.get("configMap", {}).get("name", "") not in {"", *configs}:
                yield f"{name}: no ConfigMap {volume['configMap']['name']}"
        for container in spec["containers"]:
            ports = {port["name"] for port in container["ports"]}
            for source in container.get("envFrom", ()):
                if source.get("configMapRef", {}).get("name", "") not in {"", *configs}:
                    yield f"{name}: no ConfigMap {source['configMapRef']['name']}"
                if source.get("secretRef", {}).get("name", "") not in {"", *VARIABLES}:
                    yield f"{name}: no Secret {source['secretRef']['name']}"
            known = {variable["name"] for variable in container.get("env", ())}
            for mount in container["volumeMounts"]:
                for unknown in set(GIVEN.findall(mount.get("subPathExpr", ""))) - known:
                    yield f"{name}: a path has $({unknown}), which is no variable"
            for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                port = container.get(probe, {}).get("httpGet", {}).get("port")
                if isinstance(port, str) and port not in ports:
                    yield f"{name}: {probe} asks port {port}"


def _secret_problems(name: str, secret: Document | None) -> Iterator[str]:
    if secret is None:
        return
    keys = SECRETS.get(secret["secretName"])
    if keys is None:
        yield f"{name}: no Secret {secret['secretName']}"
    elif unknown := {item["key"] for item in secret.get("items", ())} - keys:
        yield f"{name}: {secret['secretName']} has no {sorted(unknown)}"


def chosen_by(selector: Document, labels: Document) -> bool:
    """Whether a label selector takes these labels."""
    given = {**selector}
    for expression in given.get("matchExpressions", ()):
        assert expression["operator"] == "In"
        if labels.get(expression["key"]) not in expression["values"]:
            return False
    return given.get("matchLabels", {}).items() <= labels.items()


def _selector_problems(found: list[Document]) -> Iterator[str]:
    labels = [template["metadata"]["labels"] for _, template in pods(found)]
    ports = {
        str(value)
        for _, template in pods(found)
        for container in template["spec"]["containers"]
        for port in container["ports"]
        for value in (port["name"], port["containerPort"])
    }
    for each in found:
        kind, spec = each["kind"], each.get("spec", {})
        if kind == "Service":
            chosen: list[Document] = [{"matchLabels": spec["selector"]}]
            for port in spec["ports"]:
                if str(port["targetPort"]) not in ports:
                    yield f"{named(each)}: no pod has port {port['targetPort']}"
        elif kind in (*WORKLOADS, "PodDisruptionBudget", "PodMonitor"):
            chosen = [spec["selector"]]
        elif kind == "NetworkPolicy":
            chosen = [spec["podSelector"]]
            peers = [peer for rule in spec.get("ingress", ()) for peer in rule.get("from", ())]
            peers += [peer for rule in spec.get("egress", ()) for peer in rule.get("to", ())]
            outside = {"tercet-client": "true"}
            chosen += [
                peer["podSelector"]
                for peer in peers
                if "namespaceSelector" not in peer and peer["podSelector"].get("matchLabels") != outside
            ]
            for rule in spec.get("ingress", ()):
                for port in rule.get("ports", ()):
                    if isinstance(port["port"], str) and port["port"] not in ports:
                        yield f"{named(each)}: no pod has port {port['port']}"
        else:
            continue
        for selector in chosen:
            if not any(chosen_by(selector, pod) for pod in labels):
                yield f"{named(each)}: {selector} chooses no pod"
        if kind in WORKLOADS and not chosen_by(spec["selector"], spec["template"]["metadata"]["labels"]):
            yield f"{named(each)}: does not choose its own pods"


def _monitor_problems(found: list[Document]) -> Iterator[str]:
    services = of_kind(found, "Service")
    for each in of_kind(found, "ServiceMonitor"):
        spec = each["spec"]
        chosen = [
            service
            for service in services
            if chosen_by(spec["selector"], service["metadata"].get("labels", {}))
        ]
        if not chosen:
            yield f"{named(each)}: chooses no Service"
        for endpoint in spec["endpoints"]:
            names = {port["name"] for service in chosen for port in service["spec"]["ports"]}
            if endpoint["port"] not in names:
                yield f"{named(each)}: no port {endpoint['port']}"
            key = endpoint["authorization"]["credentials"]
            yield from _secret_problems(
                named(each), {"secretName": key["name"], "items": [{"key": key["key"]}]}
            )


def _target_problems(found: list[Document]) -> Iterator[str]:
    scaled = set()
    for each in of_kind(found, "HorizontalPodAutoscaler"):
        target = each["spec"]["scaleTargetRef"]
        workloads = [
            other
            for other in of_kind(found, target["kind"])
            if (other["apiVersion"], other["metadata"]["name"]) == (target["apiVersion"], target["name"])
        ]
        if not workloads:
            yield f"{named(each)}: no {target['kind']} {target['name']}"
        for other in workloads:
            scaled.add(named(other))
            if "replicas" in other["spec"]:
                yield f"{named(each)}: each deployment would set the replicas of {named(other)} back"
    budgets = of_kind(found, "PodDisruptionBudget")
    for each in of_kind(found, *WORKLOADS):
        several = named(each) in scaled or each["spec"].get("replicas", 1) > 1
        labels = each["spec"]["template"]["metadata"]["labels"]
        covered = sum(chosen_by(budget["spec"]["selector"], labels) for budget in budgets)
        if covered != several:
            yield f"{named(each)}: {covered} disruption budgets"


def settings_of(found: list[Document]) -> dict[str, dict[str, str]]:
    """The settings of each workload, by name as in tercet.toml; of Ray's those of its application."""
    configs = {each["metadata"]["name"]: each["data"] for each in of_kind(found, "ConfigMap")}
    of_pods = {
        named(each): {
            variable.removeprefix("TERCET_").lower(): value
            for container in each["spec"]["template"]["spec"]["containers"]
            for variable, value in _variables_of(container, configs)
        }
        for each in of_kind(found, *WORKLOADS)
    }
    for each in of_kind(found, "RayService"):
        (application,) = yaml.safe_load(each["spec"]["serveConfigV2"])["applications"]
        of_pods[named(each)] = application["args"]["settings"]
    return of_pods


def roles_of(found: list[Document]) -> dict[str, list[dict[str, str]]]:
    """The settings that each pod of a StatefulSet has for itself, in the order of the pods."""
    configs = {each["metadata"]["name"]: each["data"] for each in of_kind(found, "ConfigMap")}
    return {
        named(each): [
            tomllib.loads(configs[volume["configMap"]["name"]][f"{number}.toml"])
            for number in range(each["spec"]["replicas"])
        ]
        for each in of_kind(found, "StatefulSet")
        for volume in each["spec"]["template"]["spec"]["volumes"]
        if volume.get("configMap", {}).get("name") in configs
    }


def _variables_of(container: Document, configs: dict[str, dict[str, str]]) -> Iterator[tuple[str, str]]:
    """Those that are known here, as a container has them."""
    for source in container.get("envFrom", ()):
        yield from configs.get(source.get("configMapRef", {}).get("name", ""), {}).items()
    for variable in container.get("env", ()):
        if variable["name"].startswith("TERCET_"):
            yield variable["name"], variable["value"]


def _setting_problems(found: list[Document]) -> Iterator[str]:
    files = {
        name: {
            f"{mount['mountPath']}/{item}"
            for container in template["spec"]["containers"]
            for mount in container["volumeMounts"]
            for volume in template["spec"]["volumes"]
            if volume["name"] == mount["name"] and "secret" in volume
            for item in (
                [each["path"] for each in volume["secret"].get("items", ())]
                or SECRETS.get(volume["secret"]["secretName"], ())
            )
        }
        for name, template in pods(found)
    }
    for name, settings in settings_of(found).items():
        given = files[name if name in files else f"{name} head"]
        for setting, value in settings.items():
            if setting not in Settings.model_fields:
                yield f"{name}: {setting} is no setting"
            if setting.endswith("_file") and value not in given:
                yield f"{name}: {setting} names {value}, of {sorted(given)}"
            if setting in ("api_keys", "read_keys", "encoder_key", "shards_key"):
                yield f"{name}: {setting} is a secret in the open"
            for host, port in ADDRESS.findall(value):
                yield from _address_problems(found, f"{name}, {setting}", host, int(port))
    for name, roles in roles_of(found).items():
        for role in roles:
            for setting, value in role.items():
                if setting not in Settings.model_fields:
                    yield f"{name}: {setting} is no setting"
                if setting in ("follow", "publish_url"):
                    yield from _store_problems(name, value)
    encoders = {
        (settings["checkpoint"], settings.get("encoder_urls"))
        for name, settings in settings_of(found).items()
        if "checkpoint" in settings and not name.endswith("encoder")
    }
    if len(encoders) > 1:
        yield f"pods have different encoders: {sorted(map(str, encoders))}"


def _store_problems(name: str, url: str) -> Iterator[str]:
    try:
        open_store(url)
    except StoreAddressError as error:
        yield f"{name}: {error}"


def _files_of(secret: Document) -> Iterable[str]:
    """The files of a volume of a Secret."""
    return [each["path"] for each in secret.get("items", ())] or SECRETS.get(secret["secretName"], ())


def _address_problems(found: list[Document], where: str, host: str, port: int) -> Iterator[str]:
    """An address is that of a pod of a StatefulSet, behind a Service without an address of its own."""
    pod, _, name = host.partition(".")
    workload, _, number = pod.rpartition("-")
    sets = {each["metadata"]["name"]: each for each in of_kind(found, "StatefulSet")}
    services = {each["metadata"]["name"]: each["spec"] for each in of_kind(found, "Service")}
    if workload not in sets or name != sets[workload]["spec"]["serviceName"] or name not in services:
        yield f"{where}: {host} is no pod's name"
        return
    if services[name].get("clusterIP") != "None":
        yield f"{where}: the Service {name} gives pods no names"
    if port != sets[workload]["spec"]["template"]["spec"]["containers"][0]["ports"][0]["containerPort"]:
        yield f"{where}: {host} does not listen on {port}"
    if not number.isdigit() or int(number) >= most_replicas(found, workload):
        yield f"{where}: there is never a pod {pod}"


def most_replicas(found: list[Document], workload: str) -> int:
    """How many pods a StatefulSet may have."""
    for each in of_kind(found, "HorizontalPodAutoscaler"):
        if each["spec"]["scaleTargetRef"]["name"] == workload:
            return int(each["spec"]["maxReplicas"])
    (found_set,) = (each for each in of_kind(found, "StatefulSet") if each["metadata"]["name"] == workload)
    return int(found_set["spec"].get("replicas", 1))
