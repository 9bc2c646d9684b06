"""Judge a composed object as the API servers that receive it would, without one.

The control plane checks the object itself; a provider-kubernetes Object carries a manifest that a workload cluster
checks, at every Kubernetes version we support.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import yaml
from referencing import Registry, Resource

import modelplane_schemas
from modelplane.kube import metadata, rules, schema
from modelplane.kube.problem import join
from modelplane.kube.quantity import Quantity, QuantityError

SCHEMAS = Path(__file__).resolve().parent.parent / "schemas"

Key = tuple[str, str]

_CLUSTER_SCOPED = {
    "ClusterRole",
    "ClusterRoleBinding",
    "CustomResourceDefinition",
    "DeviceClass",
    "Namespace",
    "PersistentVolume",
    "PriorityClass",
    "StorageClass",
}
_QUANTITIES = {"requests", "limits", "hard", "capacity"}


def validate_composed(resource: Mapping[str, Any]) -> list[str]:
    """List what an API server refuses in a composed object, as `path: message`; empty where it accepts it."""
    return [*_validate(resource, ""), *_nulls(resource, "")]


def _validate(resource: Mapping[str, Any], path: str) -> Iterator[str]:
    key = (str(resource.get("apiVersion")), str(resource.get("kind")))
    found = served().get(key)
    if found is not None:
        yield from _custom(found["schema"], resource, path)
    elif "." not in key[0].partition("/")[0] or key[0].partition("/")[0].endswith(".k8s.io"):
        for version in kubernetes_versions():
            yield from _built_in(version, key, resource, path)
    else:
        yield f"{path or 'object'}: no schema for {key[0]} {key[1]}; schemas/versions.yaml must name it"
    if key[1] == "Object" and key[0].startswith("kubernetes.m.crossplane.io/"):
        yield from _remote(resource)


def _custom(served_schema: schema.Schema, resource: Mapping[str, Any], path: str) -> Iterator[str]:
    defaulted = schema.apply_defaults(served_schema, resource)
    problems = schema.validate(served_schema, defaulted)
    if not problems:
        problems = rules.check(served_schema, defaulted).problems
    for problem in problems:
        yield f"{_below(path, problem.path)}: {problem.message}"


def _remote(resource: Mapping[str, Any]) -> Iterator[str]:
    """Check the manifest of an Object; one that is only observed needs no more than a name."""
    spec = resource.get("spec", {})
    manifest = spec.get("forProvider", {}).get("manifest")
    if not isinstance(manifest, dict):
        return
    path = "spec.forProvider.manifest"
    policies = set(spec.get("managementPolicies", ["*"]))
    writes = policies & {"*", "Create", "Update"}
    yield from (p for p in _validate(manifest, path) if writes or not p.endswith("is required"))
    meta = manifest.get("metadata", {})
    if not meta.get("name"):
        yield f"{path}.metadata.name: is required"
    found = served().get((str(manifest.get("apiVersion")), str(manifest.get("kind"))))
    namespaced = found["scope"] == "Namespaced" if found else manifest.get("kind") not in _CLUSTER_SCOPED
    if namespaced != bool(meta.get("namespace")):
        yield f"{path}.metadata.namespace: {'is required' if namespaced else 'a cluster-scoped object has none'}"


def _built_in(version: str, key: Key, resource: Mapping[str, Any], path: str) -> Iterator[str]:
    validator = _validator(version, *key)
    if validator is None:
        yield f"{path or 'object'}: Kubernetes {version} has no {key[0]} {key[1]}"
        return
    for error in sorted(validator.iter_errors(resource), key=lambda e: [str(part) for part in e.absolute_path]):
        where = ""
        for part in error.absolute_path:
            where = join(where, part)
        yield f"{_below(path, where)}: Kubernetes {version}: {error.message[:300]}"
    if version == kubernetes_versions()[0]:
        for problem in metadata.validate(resource.get("metadata", {}), _below(path, "metadata")):
            yield f"{problem.path}: {problem.message}"
        yield from _quantities(resource, path)
        yield from _selector(resource, path)


def _selector(resource: Mapping[str, Any], path: str) -> Iterator[str]:
    if resource.get("kind") not in ("Deployment", "StatefulSet", "DaemonSet"):
        return
    spec = resource.get("spec", {})
    wanted = spec.get("selector", {}).get("matchLabels") or {}
    labels = spec.get("template", {}).get("metadata", {}).get("labels") or {}
    if not wanted or wanted.items() - labels.items():
        yield f"{_below(path, 'spec.selector')}: must select the labels of spec.template"


def _quantities(value: object, path: str, holds: bool = False) -> Iterator[str]:
    """Check the strings of every map that holds quantities, and every sizeLimit."""
    if isinstance(value, dict):
        for name, item in value.items():
            where = join(path, name)
            if isinstance(item, str) and (holds or name == "sizeLimit"):
                try:
                    Quantity.parse(item)
                except QuantityError as error:
                    yield f"{where}: {error}"
            else:
                yield from _quantities(item, where, holds=name in _QUANTITIES)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _quantities(item, join(path, index))


def _nulls(value: object, path: str) -> Iterator[str]:
    if value is None:
        yield f"{path}: is null; leave the field out"
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _nulls(item, join(path, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _nulls(item, join(path, index))


def _below(path: str, rest: str) -> str:
    return f"{path}.{rest}" if path and rest else path or rest or "object"


@functools.cache
def served() -> dict[Key, dict[str, Any]]:
    """Return {schema, scope} of every kind in schemas/crds and of our own, by apiVersion and kind."""
    kinds: dict[Key, dict[str, Any]] = {}
    for file in sorted((SCHEMAS / "crds").glob("*/*.json")):
        definition = json.loads(file.read_text("utf-8"))
        if file.parent.name == "manifests":
            continue
        spec = definition["spec"]
        version = spec["versions"][0]
        kinds[f"{spec['group']}/{version['name']}", spec["names"]["kind"]] = {
            "schema": version["schema"]["openAPIV3Schema"],
            "scope": spec["scope"],
        }
    for kind in modelplane_schemas.kinds():
        ours = modelplane_schemas.xrd(kind)
        kinds[f"{ours['group']}/{ours['version']}", kind] = {"schema": ours["schema"], "scope": ours["scope"]}
    return kinds


@functools.cache
def kubernetes_versions() -> tuple[str, ...]:
    """Name the Kubernetes versions that a manifest must be valid on."""
    return tuple(yaml.safe_load((SCHEMAS / "versions.yaml").read_text("utf-8"))["kubernetes"])


@functools.cache
def _registry(version: str) -> tuple[Any, Registry]:
    folder = files("kubernetes_validate").joinpath("kubernetes-json-schema", f"v{version}.0-local-strict")
    definitions = Resource.from_contents(json.loads(folder.joinpath("_definitions.json").read_text("utf-8")))
    return folder, definitions @ Registry()


@functools.cache
def _validator(version: str, api_version: str, kind: str) -> jsonschema.Draft202012Validator | None:
    folder, registry = _registry(version)
    group, _, number = api_version.rpartition("/")
    stem = "-".join(part for part in (kind.lower(), group.partition(".")[0], number) if part)
    try:
        contents = json.loads(folder.joinpath(f"{stem}.json").read_text("utf-8"))
    except FileNotFoundError:
        return None
    known = contents.get("x-kubernetes-group-version-kind") or [{}]
    if known[0].get("group") != group:
        return None
    return jsonschema.Draft202012Validator(contents, registry=Resource.from_contents(contents) @ registry)
