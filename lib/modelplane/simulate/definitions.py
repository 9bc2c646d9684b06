"""The XRDs and Compositions of this package, read once.

They are the files under apis/: beside the source in a checkout, inside the schemas package in an installed wheel.
"""

import functools
import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from modelplane.kube.objects import mapping, objects, text
from modelplane.xfn.caller import Selector

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

CLUSTER_SCOPED = frozenset(
    {
        "ClusterProviderConfig",
        "ClusterRole",
        "ClusterRoleBinding",
        "ClusterUsage",
        "CustomResourceDefinition",
        "GatewayClass",
        "Namespace",
        "PersistentVolume",
        "PriorityClass",
        "StorageClass",
    }
)
"""Kinds of others that are cluster-scoped, among those that manifests and functions here hold."""


@dataclass(frozen=True)
class Definition:
    """One composite kind: its schema, and the requirements that its Composition states statically."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    schema: dict[str, Any]
    step: str
    requirements: dict[str, Selector]

    @property
    def api_version(self) -> str:
        """`group/version`."""
        return f"{self.group}/{self.version}"


@functools.lru_cache(maxsize=1)
def load() -> dict[tuple[str, str], Definition]:
    """Every definition by group and kind.

    Raises FileNotFoundError where this installation has no apis folder.
    """
    found: dict[tuple[str, str], Definition] = {}
    for path in sorted(folder().glob("*/definition.yaml")):
        xrd = yaml.load(path.read_text(), Loader=_LOADER)  # noqa: S506 - a safe loader
        composition = yaml.load(path.with_name("composition.yaml").read_text(), Loader=_LOADER)  # noqa: S506
        definition = _definition(xrd, composition)
        found[definition.group, definition.kind] = definition
    return found


def folder() -> Path:
    """Where the files are."""
    places = [Path(__file__).resolve().parents[3] / "apis"]
    spec = importlib.util.find_spec("modelplane_schemas")
    if spec is not None:
        places += [Path(place) / "apis" for place in spec.submodule_search_locations or ()]
    for place in places:
        if any(place.glob("*/definition.yaml")):
            return place
    raise FileNotFoundError("the XRDs of Modelplane are not in this installation: no apis folder found")


def _definition(xrd: dict[str, Any], composition: dict[str, Any]) -> Definition:
    spec = mapping(xrd, "spec")
    version = next(v for v in objects(spec, "versions") if v.get("referenceable"))
    step = objects(composition, "spec", "pipeline")[0]
    requirements = {
        text(r, "requirementName"): Selector(
            api_version=text(r, "apiVersion"),
            kind=text(r, "kind"),
            match_name=text(r, "name"),
            match_labels=tuple(sorted(mapping(r, "matchLabels").items())),
            namespace=text(r, "namespace"),
        )
        for r in objects(step, "requirements", "requiredResources")
    }
    return Definition(
        group=text(spec, "group"),
        version=text(version, "name"),
        kind=text(spec, "names", "kind"),
        plural=text(spec, "names", "plural"),
        namespaced=text(spec, "scope") != "Cluster",
        schema=dict(mapping(version, "schema", "openAPIV3Schema")),
        step=text(step, "step"),
        requirements=requirements,
    )


def is_namespaced(group: str, kind: str) -> bool:
    """Whether objects of a kind live in a namespace."""
    definition = load().get((group, kind))
    return definition.namespaced if definition is not None else kind not in CLUSTER_SCOPED
