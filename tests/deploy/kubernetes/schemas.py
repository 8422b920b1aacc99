"""Whether Kubernetes would take a manifest: its schemas, and those of custom resources with their rules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
import yaml

from tests.deploy.kubernetes.manifests import Document, named, pods

KUBERNETES = "1.32"
IMMUTABLE = "self == oldSelf"  # of changes alone
ONE_OF = re.compile(r"self in (\[.*\])")


def schema_problems(found: list[Document]) -> list[str]:
    """What Kubernetes would not take: unknown fields, wrong types, missing ones. Pods of Ray's cluster are
    looked at, too.
    """
    validate = pytest.importorskip("kubernetes_validate", reason="needs kubernetes-validate")
    problems = []
    templates = [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": template["spec"]}
        for name, template in pods(found)
        if name.startswith("RayService")
    ]
    for each in [*found, *templates]:
        try:
            validate.validate(each, KUBERNETES, strict=True)
        except validate.ValidationError as error:
            problems.append(f"{named(each)}: {error.message}")
        except validate.SchemaNotFoundError:
            if "." not in each["apiVersion"].partition("/")[0] or "k8s.io" in each["apiVersion"]:
                problems.append(f"{named(each)}: no schema for {each['apiVersion']}")
    return problems


def closed(schema: Any) -> Any:
    """A schema that refuses fields that it does not name, as the API server warns of them and drops them."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: closed(each) for name, each in schema.items()}
    if isinstance(found.get("properties"), dict) and not schema.get("x-kubernetes-preserve-unknown-fields"):
        found.setdefault("additionalProperties", False)
    if schema.get("x-kubernetes-int-or-string"):
        found["type"] = ["integer", "string"]
    return found


def crd_problems(document: Document, crd: Document) -> list[str]:
    """What a custom resource has against its definition, whose rules in CEL are looked at as well."""
    version = document["apiVersion"].partition("/")[2]
    (schema,) = (
        each["schema"]["openAPIV3Schema"] for each in crd["spec"]["versions"] if each["name"] == version
    )
    whole = {**schema, "properties": {**schema["properties"], "metadata": {"type": "object"}}}
    errors = jsonschema.Draft7Validator(closed(whole)).iter_errors(document)
    return [f"{error.json_path}: {error.message}" for error in errors] + [
        f"{path}: {message}" for path, message in cel_problems(document, schema)
    ]


def cel_problems(value: Any, schema: Document, path: str = "$") -> Iterator[tuple[str, str]]:
    """The rules that a value breaks. Raises AssertionError for a rule of another form than those that there
    are.
    """
    for rule in schema.get("x-kubernetes-validations", ()):
        if rule["rule"] == IMMUTABLE:
            continue
        choices = ONE_OF.fullmatch(rule["rule"])
        assert choices, f"{path}: the rule {rule['rule']!r} is new"
        if value not in yaml.safe_load(choices[1]):
            yield path, rule["message"]
    if isinstance(value, dict):
        for name, each in value.items():
            inner = schema.get("properties", {}).get(name)
            if inner is not None:
                yield from cel_problems(each, inner, f"{path}.{name}")
    if isinstance(value, list):
        for place, each in enumerate(value):
            yield from cel_problems(each, schema.get("items", {}), f"{path}[{place}]")
