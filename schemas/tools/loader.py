"""Schemas of our kinds and manifests of others, as package data; models are in one module per kind.

A model is imported by group and kind: `from modelplane_schemas.modelplane_ai.modeldeployment import ModelDeployment`.
"""

from __future__ import annotations

import functools
import json
from importlib.resources import files
from typing import Any

_DATA = files(__name__)


@functools.cache
def kinds() -> tuple[str, ...]:
    """Name our kinds, sorted."""
    index: list[str] = json.loads(_DATA.joinpath("openapi", "index.json").read_text("utf-8"))
    return tuple(index)


@functools.cache
def xrd(kind: str) -> dict[str, Any]:
    """Return what an API server serves for one of our kinds; shared between callers, so do not change it.

    Shape: {group, version, kind, listKind, plural, singular, shortNames, categories, scope, subresources, columns,
    pipeline, schema}, where pipeline is the Composition's, and schema is structural, without descriptions, and holds
    the fields that Crossplane adds to an XR.
    Raises KeyError for a kind that is not ours.
    """
    if kind not in kinds():
        raise KeyError(f"{kind} is not one of {', '.join(kinds())}")
    served: dict[str, Any] = json.loads(_DATA.joinpath("openapi", f"{kind.lower()}.json").read_text("utf-8"))
    return served


def manifest(name: str) -> dict[str, Any]:
    """Return a fresh copy of a manifest that we install, such as `inferencepools`.

    Raises KeyError for a name that is not there.
    """
    try:
        text = _DATA.joinpath("manifests", f"{name}.json").read_text("utf-8")
    except FileNotFoundError:
        raise KeyError(f"there is no manifest {name}") from None
    loaded: dict[str, Any] = json.loads(text)
    return loaded
