"""What install.yaml lets Crossplane do is what our functions have it do."""

from pathlib import Path
from typing import Any

import yaml

from modelplane.simulate.world import World

ROOT = Path(__file__).resolve().parents[2]
PROVIDERS = (".crossplane.io", ".upbound.io", "modelplane.ai")
"""Groups whose rights Crossplane's RBAC manager grants by itself."""


def rules() -> list[dict[str, Any]]:
    found = [d for d in yaml.safe_load_all((ROOT / "package" / "install.yaml").read_text()) if d]
    (role,) = (
        d
        for d in found
        if (d["metadata"].get("labels") or {}).get("rbac.crossplane.io/aggregate-to-crossplane") == "true"
    )
    return list(role["rules"])


def plural(kind: str) -> str:
    name = kind.lower()
    return name.removesuffix("cy") + "cies" if name.endswith("cy") else name + ("es" if name.endswith("s") else "s")


def gateway() -> dict[str, Any]:
    """The one that composes most."""
    metallb = {"loadBalancer": "MetalLB", "metallb": {"addressPool": "172.18.255.200-172.18.255.250"}}
    return {
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "InferenceGateway",
        "metadata": {"name": "default"},
        "spec": {"backend": "Traefik", "traefik": metallb},
    }


def test_crossplane_may_compose_every_kind(world: World) -> None:
    for folder in ("getting-started", "modelendpoints"):
        for file in sorted((ROOT / "examples" / folder).glob("*.yaml")):
            world.apply(file)
    world.apply(gateway())
    world.settle()
    composed = {
        (o["apiVersion"].rpartition("/")[0], plural(o["kind"]))
        for o in world.store
        if (o["metadata"].get("labels") or {}).get("crossplane.io/composite")
    }
    ours = {(g, r) for g, r in composed if not g.endswith(PROVIDERS)}
    granted = {
        (g, r) for rule in rules() if rule["verbs"] == ["*"] for g in rule["apiGroups"] for r in rule["resources"]
    }
    assert ("traefik.io", "middlewares") in ours
    assert sorted(ours - granted) == []
