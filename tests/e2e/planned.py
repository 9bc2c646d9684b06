"""What a fleet became, against what `modelplane plan` prints for the same manifests."""

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from tests.e2e import fleet
from tests.e2e.plane.client import Manifest, is_true
from tests.e2e.plane.plane import ControlPlane
from tests.e2e.plane.waiting import wait

from modelplane import catalog
from modelplane.labels import DEPLOYMENT, SYSTEM_NAMESPACE, VERSION

KEY = "crossplane.io/composition-resource-name"
Way = tuple[str, ...]


@dataclass(frozen=True)
class State:
    """A fleet without what may differ between equals: names of replicas, their indices, addresses.

    `placements` are deployment, cluster, units by pool and device, and whether the replica serves. `backends` are
    service, deployment, cluster, weight and health. `pools` are cluster, pool, device, units, units used, and units
    free on nodes that are partly used. `objects` counts what each manifest composes, by the way down to it.
    """

    placements: list[tuple[Any, ...]]
    backends: list[tuple[Any, ...]]
    pools: list[tuple[Any, ...]]
    objects: Counter[Way]

    def differences(self, other: "State") -> list[str]:
        """Say what is here only (-) and in the other only (+)."""
        found = []
        for field in fields(self):
            mine, yours = Counter(getattr(self, field.name)), Counter(getattr(other, field.name))
            found += [f"- {field.name} {what}" for what in sorted((mine - yours).elements(), key=str)]
            found += [f"+ {field.name} {what}" for what in sorted((yours - mine).elements(), key=str)]
        return found


def check(plane: ControlPlane, seconds: float = 120) -> None:
    """Wait until the fleet is what a plan of the manifests as they are now says, and until nothing is left to do.

    Two plans are asked. One starts from nothing: it names one place for each replica, since the example has one kind of
    node for each model, so whatever happened on the way the fleet must end there. The other starts from the live
    objects and must not want to add, change or delete any. That one holds too where history decides a place.
    """
    wanted = promised(plan(plane))
    last: list[str] = []

    def same() -> bool:
        last[:] = wanted.differences(reached(plane))
        return not last

    wait("the fleet is what was planned", same, seconds, lambda: "\n".join(last) + "\n" + plane.why(), step=0.5)
    at_rest(plane, 30)


def at_rest(plane: ControlPlane, seconds: float = 120) -> None:
    """Wait until a plan that starts from the live objects would not add, change or delete any."""

    def nothing() -> bool:
        changes = plan(plane, observed=True)["changes"]
        last.update(changes)
        return not any(changes.values())

    last: dict[str, Any] = {}
    wait("a plan from the live objects changes nothing", nothing, seconds, lambda: str(last), step=0.5)


def plan(plane: ControlPlane, *, observed: bool = False) -> dict[str, Any]:
    """Run `modelplane plan` on what is applied; `observed` gives it the live objects to start from."""
    folder = plane.folder / "plan"
    folder.mkdir(exist_ok=True)

    def write(name: str, items: list[Manifest]) -> str:
        path = folder / name
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        return str(path)

    command = [str(Path(sys.executable).with_name("modelplane")), "plan", "-o", "json"]
    command.append(write("manifests.json", [_as_applied(xr) for xr in _roots(plane)]))
    if observed:
        command += ["--observed", write("observed.json", _live(plane))]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def _roots(plane: ControlPlane) -> list[Manifest]:
    """Read the live objects of the example's manifests."""
    found = []
    for manifest in fleet.manifests():
        meta = manifest["metadata"]
        reference = (manifest["apiVersion"], manifest["kind"], meta["name"], meta.get("namespace", ""))
        live = plane.control.client.get(*reference)
        assert live is not None, f"no {reference}"
        found.append(live)
    return found


def _as_applied(xr: Manifest) -> Manifest:
    """Return an object as a user would apply it now, with every change since."""
    meta = {key: xr["metadata"][key] for key in ("name", "namespace", "annotations") if key in xr["metadata"]}
    labels = {k: v for k, v in xr["metadata"].get("labels", {}).items() if "crossplane.io/" not in k}
    spec = {key: value for key, value in xr["spec"].items() if key != "crossplane"}
    return {"apiVersion": xr["apiVersion"], "kind": xr["kind"], "metadata": {**meta, "labels": labels}, "spec": spec}


def _is_composite(manifest: Manifest) -> bool:
    return (manifest["apiVersion"], manifest["kind"]) in catalog.NAMES.values()


def _composed(plane: ControlPlane, xr: Manifest) -> list[Manifest]:
    """Read what a composite composes; fails where something that it names is not there."""
    found = []
    for ref in xr["spec"].get("crossplane", {}).get("resourceRefs", []):
        namespace = ref.get("namespace") or xr["metadata"].get("namespace", "")
        one = plane.control.client.get(ref["apiVersion"], ref["kind"], ref["name"], namespace)
        assert one is not None, f"{xr['kind']} {xr['metadata']['name']} names {ref}, which is not there"
        found.append(one)
    return found


def _live(plane: ControlPlane) -> list[Manifest]:
    """Read the example's objects and all that they compose, and the Secrets that they name."""
    found = _roots(plane)
    for xr in found:
        if _is_composite(xr):
            found += _composed(plane, xr)
    secrets = plane.control.client.list("v1", "Secret")
    return found + [s for s in secrets if s["metadata"]["namespace"] in (fleet.TEAM, SYSTEM_NAMESPACE)]


def _step(key: str, kind: str, inner: str) -> str:
    """Name a composed object: its key, without a replica's index, its kind, and the kind of its manifest."""
    if kind in ("ModelReplica", "ModelEndpoint"):
        key = re.sub(r"-\d+$", "", key)
    return f"{key}: {kind} {inner}".rstrip()


def reached(plane: ControlPlane) -> State:
    """Read the state of the live fleet."""
    replicas = plane.control.client.list(VERSION, "ModelReplica", fleet.TEAM)
    deployment = {r["metadata"]["name"]: r["metadata"]["labels"][DEPLOYMENT] for r in replicas}
    placements = [
        (deployment[r["metadata"]["name"]], r["spec"]["clusterName"], _held(r), is_true(r, "Ready")) for r in replicas
    ]
    backends = [
        (service["metadata"]["name"], deployment.get(b["endpoint"]), b["cluster"], b.get("weight", 0), b["healthy"])
        for service in plane.control.client.list(VERSION, "ModelService", fleet.TEAM)
        for b in service["status"].get("backends", [])
    ]
    pools = [
        use for c in plane.control.client.list(VERSION, "InferenceCluster") for use in _uses(c["metadata"]["name"], c)
    ]
    found: dict[str, Manifest] = {}
    objects: Counter[Way] = Counter()
    for xr in _roots(plane):
        objects.update(_below(plane, xr, (f"{xr['kind']} {xr['metadata']['name']}",), found))
    for api_version, kind in sorted({(o["apiVersion"], o["kind"]) for o in found.values()}):
        for one in plane.control.client.list(api_version, kind):
            meta = one["metadata"]
            if (
                KEY in meta.get("annotations", {})
                and meta["uid"] not in found
                and not meta["name"].startswith("canary")
            ):
                objects[("orphan", kind, meta["name"])] += 1
    return State(sorted(placements), sorted(backends), sorted(pools), objects)


def _held(replica: Manifest) -> tuple[tuple[str, str, int], ...]:
    held: Counter[tuple[str, str]] = Counter()
    for engine in replica["spec"]["engines"]:
        for member in engine["members"]:
            for device, count in member.get("deviceUsage", {}).items():
                held[member["nodePoolName"], device] += count * engine.get("copies", 1)
    return tuple(sorted((*place, count) for place, count in held.items()))


def _uses(cluster: str, xr: Manifest) -> Iterator[tuple[Any, ...]]:
    for pool in xr["status"]["gpuPools"]:
        free = {entry["device"]: entry["nodes"] for entry in pool["free"]}
        for device in pool["devices"]:
            units = [(n["free"], n["count"]) for n in free[device["name"]]]
            total = device["count"] * pool["nodes"]
            used = total - sum(left * count for left, count in units)
            stranded = sum(left * count for left, count in units if left < device["count"])
            yield cluster, pool["name"], device["name"], total, used, stranded


def _below(plane: ControlPlane, xr: Manifest, above: Way, found: dict[str, Manifest]) -> Iterator[Way]:
    for one in _composed(plane, xr) if _is_composite(xr) else ():
        found[one["metadata"]["uid"]] = one
        inner = one.get("spec", {}).get("forProvider", {}).get("manifest", {}).get("kind", "")
        way = (*above, _step(one["metadata"]["annotations"][KEY], one["kind"], inner))
        yield way
        yield from _below(plane, one, way, found)


def promised(report: dict[str, Any]) -> State:
    """Read the state that a plan promises."""
    deployment = {p["replica"]: p["deployment"] for p in report["placements"]}
    placements = [
        (p["deployment"], p["cluster"], tuple((d["pool"], d["device"], d["count"]) for d in p["devices"]), p["ready"])
        for p in report["placements"]
    ]
    backends = [
        (s["name"], deployment[b["endpoint"]], b["cluster"], b["weight"], b["healthy"])
        for s in report["services"]
        for b in s["backends"]
    ]
    pools = [(p["cluster"], p["pool"], p["device"], p["total"], p["used"], p["stranded"]) for p in report["pools"]]
    objects: Counter[Way] = Counter()
    for root in report["composites"]:
        objects.update(_promised(root, (f"{root['kind']} {root['name']}",)))
    return State(sorted(placements), sorted(backends), sorted(pools), objects)


def _promised(composite: dict[str, Any], above: Way) -> Iterator[Way]:
    for one in composite["children"]:
        inner = one["manifest"].split(" ")[0] if one["kind"] == "Object" else ""
        way = (*above, _step(one["key"], one["kind"], inner))
        yield way
        yield from _promised(one, way)
