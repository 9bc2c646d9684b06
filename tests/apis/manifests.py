"""Manifests that an API server with our definitions must admit or refuse, as data for any judge of them.

In `forbidden/` each document starts with a comment: `# CASE: MESSAGE` must be refused with that message, and
`# CASE, before` is what the object was before an update that must be refused.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

ROOT = Path(__file__).resolve().parent.parent.parent
HERE = Path(__file__).resolve().parent
_HEAD = re.compile(r"# (?P<case>[a-z0-9-]+)(?:, before|: (?P<message>.+))\n")


class Forbidden(NamedTuple):
    """One manifest that must be refused, the object it updates if any, and a part of the refusal."""

    case: str
    before: dict[str, Any] | None
    manifest: dict[str, Any]
    message: str


@functools.cache
def definitions() -> dict[str, dict[str, Any]]:
    """Load every XRD, by kind; shared between callers, so do not change it."""
    loaded = [yaml.safe_load(p.read_text("utf-8")) for p in sorted(ROOT.glob("apis/*/definition.yaml"))]
    return {d["spec"]["names"]["kind"]: d for d in loaded}


@functools.cache
def compositions() -> dict[str, dict[str, Any]]:
    """Load every Composition, by the kind it composes; shared between callers."""
    loaded = [yaml.safe_load(p.read_text("utf-8")) for p in sorted(ROOT.glob("apis/*/composition.yaml"))]
    return {c["spec"]["compositeTypeRef"]["kind"]: c for c in loaded}


@functools.cache
def schema_of(kind: str) -> dict[str, Any]:
    """Return the schema of a kind; shared between callers, so do not change it."""
    (version,) = definitions()[kind]["spec"]["versions"]
    schema: dict[str, Any] = version["schema"]["openAPIV3Schema"]
    return schema


def valid() -> list[tuple[str, dict[str, Any]]]:
    """Load the manifests that must be admitted, in order; the same name again is an update."""
    files = [*sorted((HERE / "valid").glob("*.yaml")), *sorted((HERE / "seeds").glob("*.yaml"))]
    return [(f.stem, d) for f in files for d in yaml.safe_load_all(f.read_text("utf-8"))]


def forbidden() -> Iterator[Forbidden]:
    """Load the manifests that must be refused."""
    for file in sorted((HERE / "forbidden").glob("*.yaml")):
        before: tuple[str, dict[str, Any]] | None = None
        for text in re.split(r"(?m)^---\n", file.read_text("utf-8")):
            head = _HEAD.match(text)
            if head is None:
                raise ValueError(f"{file.name}: a document lacks its comment: {text[:60]!r}")
            manifest = yaml.safe_load(text)
            if head["message"] is None:
                before = (head["case"], manifest)
                continue
            old = before[1] if before and before[0] == head["case"] else None
            yield Forbidden(f"{file.stem}-{head['case']}", old, manifest, head["message"])
            before = None
