"""The revision of a template: equal templates, equal revisions, whatever an upgrade adds to the schema.

Fields that equal their schema default are left out before hashing, so a field that a new version defaults changes
nothing. A published default is never changed; `tests` compare the table with the definition.
"""

import json
from collections.abc import Mapping
from typing import Any

from modelplane import names
from modelplane.kube.objects import items, mapping, text

DEFAULTS: dict[str, Any] = {
    "engines": [
        {
            "copies": 1,
            "http": {"port": 8000, "healthPath": "/health", "startupTimeoutSeconds": 3600},
            "members": [{"role": "Standalone", "nodeSelector": {"devices": [{"count": 1}]}}],
        }
    ],
    "mode": "Unified",
}
"""Defaults in the shape of the hashed document; a list holds the defaults of its elements."""


def revision(template: Mapping[str, Any], artifact: str = "") -> str:
    """Hash `spec.template` of a ModelDeployment: engines, serving mode, metadata, and the cache artifact it serves."""
    document = {
        "engines": items(template, "spec", "engines"),
        "mode": text(template, "spec", "serving", "mode"),
        "metadata": mapping(template, "metadata"),
        "artifact": artifact,
    }
    canonical = json.dumps(_strip(document, DEFAULTS), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return names.digest("revision", canonical)


def _strip(value: Any, defaults: Any) -> Any:
    if isinstance(value, Mapping):
        known = defaults if isinstance(defaults, Mapping) else {}
        stripped = {key: _strip(inner, known.get(key)) for key, inner in value.items()}
        return {
            key: inner
            for key, inner in stripped.items()
            if inner not in (None, {}, "") and not _equals(value[key], known.get(key))
        }
    if isinstance(value, (list, tuple)):
        inner = defaults[0] if isinstance(defaults, list) else None
        return [_strip(item, inner) for item in value]
    return value


def _equals(value: Any, default: Any) -> bool:
    return not isinstance(default, (Mapping, list)) and default is not None and value == default
