"""What an API server serves for a CompositeResourceDefinition."""

from __future__ import annotations

import copy
from typing import Any

from openapi import Schema, strip

_TEXT: Schema = {"type": "string"}
_LABELS: Schema = {
    "type": "object",
    "required": ["matchLabels"],
    "properties": {"matchLabels": {"type": "object", "additionalProperties": _TEXT}},
}
_NAMED: Schema = {"type": "object", "required": ["name"], "properties": {"name": _TEXT}}
_LONGEST_NAME = 63

# Crossplane adds these to the CRD of every namespaced or cluster-scoped XR.
_CROSSPLANE: Schema = {
    "type": "object",
    "properties": {
        "compositionRef": _NAMED,
        "compositionSelector": _LABELS,
        "compositionRevisionRef": _NAMED,
        "compositionRevisionSelector": _LABELS,
        "compositionUpdatePolicy": {"type": "string", "enum": ["Automatic", "Manual"]},
        "resourceRefs": {
            "type": "array",
            "x-kubernetes-list-type": "atomic",
            "items": {
                "type": "object",
                "required": ["apiVersion", "kind"],
                "properties": {"apiVersion": _TEXT, "kind": _TEXT, "name": _TEXT, "namespace": _TEXT},
            },
        },
    },
}
_CONDITIONS: Schema = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
    "items": {
        "type": "object",
        "required": ["lastTransitionTime", "reason", "status", "type"],
        "properties": {
            "lastTransitionTime": {"type": "string", "format": "date-time"},
            "message": _TEXT,
            "observedGeneration": {"type": "integer", "format": "int64"},
            "reason": _TEXT,
            "status": _TEXT,
            "type": _TEXT,
        },
    },
}


def served(definition: dict[str, Any], composition: dict[str, Any]) -> dict[str, Any]:
    """Return names, scope and schema of the one version that an XRD serves, and the pipeline of its Composition."""
    spec = definition["spec"]
    (version,) = [v for v in spec["versions"] if v["served"]]
    schema = copy.deepcopy(version["schema"]["openAPIV3Schema"])
    strip(schema, messages=True)
    properties = schema["properties"]
    properties |= {"apiVersion": _TEXT, "kind": _TEXT}
    metadata = properties.setdefault("metadata", {"type": "object"})
    name = metadata.setdefault("properties", {}).setdefault("name", {"type": "string"})
    name.setdefault("maxLength", _LONGEST_NAME)
    properties["spec"].setdefault("properties", {})["crossplane"] = _CROSSPLANE
    properties.setdefault("status", {"type": "object"}).setdefault("properties", {})["conditions"] = _CONDITIONS
    names = spec["names"]
    return {
        "group": spec["group"],
        "version": version["name"],
        "kind": names["kind"],
        "listKind": names.get("listKind", names["kind"] + "List"),
        "plural": names["plural"],
        "singular": names.get("singular", names["kind"].lower()),
        "shortNames": names.get("shortNames", []),
        "categories": names.get("categories", []),
        "scope": spec["scope"],
        "subresources": version.get("subresources", {}),
        "columns": version.get("additionalPrinterColumns", []),
        "pipeline": composition["spec"]["pipeline"],
        "schema": copy.deepcopy(schema),
    }
