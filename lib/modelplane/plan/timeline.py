"""What a cluster is made of, and an estimate of when: the order is the functions' own, the minutes are typical ones.

The simulation creates an object in the round in which its gate opens. Objects of one round are made at once, and the
next round waits for the slowest of them.
"""

from collections import Counter
from collections.abc import Iterator

from modelplane.kube.objects import Object, objects, text
from modelplane.plan import fleet
from modelplane.plan.report import Built, Step
from modelplane.simulate import World
from modelplane.simulate.store import controller_of, group_of, key_of

MINUTES = {
    ("eks.aws.m.upbound.io", "Cluster"): 10,
    ("eks.aws.m.upbound.io", "NodeGroup"): 3,
    ("eks.aws.m.upbound.io", "Addon"): 2,
    ("ec2.aws.m.upbound.io", "NATGateway"): 2,
    ("efs.aws.m.upbound.io", "MountTarget"): 2,
    ("efs.aws.m.upbound.io", "FileSystem"): 1,
    ("container.gcp.m.upbound.io", "Cluster"): 8,
    ("container.gcp.m.upbound.io", "NodePool"): 3,
    ("compute.gcp.m.upbound.io", "Network"): 1,
    ("cloudplatform.gcp.m.upbound.io", "ProjectService"): 1,
    ("helm.m.crossplane.io", "Release"): 2,
}
"""Typical minutes until an object is Ready, by group and kind; whatever is not here takes seconds."""

CLOUDS = ("EKSCluster", "GKECluster")


def built(world: World) -> tuple[Built, ...]:
    """Every cluster that clouds are asked for, by the composite that nothing else composes."""
    found = []
    for obj in world.store:
        if not fleet.is_composite(obj) or controller_of(obj):
            continue
        below = list(_below(world, obj))
        if any(text(o, "kind") in CLOUDS for o in (obj, *below)):
            found.append(_one(world, obj, below))
    return tuple(found)


def _below(world: World, obj: Object) -> Iterator[Object]:
    for child in world.crossplane.observe(obj).values():
        yield child
        if fleet.is_composite(child):
            yield from _below(world, child)


def _one(world: World, obj: Object, below: list[Object]) -> Built:
    rounds: dict[int, list[Object]] = {}
    for child in below:
        rounds.setdefault(world.born.get(key_of(child), 0), []).append(child)
    steps = []
    minute, after = 0, ""
    for number in sorted(rounds):
        made = rounds[number]
        steps.append(Step(minute, after, _counts(made)))
        slowest = max(made, key=lambda o: (_minutes(o), text(o, "kind")))
        if _minutes(slowest):
            minute, after = minute + _minutes(slowest), text(slowest, "kind")
    return Built(
        kind=text(obj, "kind"),
        namespace=text(obj, "metadata", "namespace"),
        name=text(obj, "metadata", "name"),
        objects=len(below),
        kinds=_counts(below),
        steps=_joined(steps),
        minutes=minute,
    )


def _joined(steps: list[Step]) -> tuple[Step, ...]:
    """Steps that start at the same minute are one."""
    joined: list[Step] = []
    for step in steps:
        if joined and joined[-1].minute == step.minute:
            both = Counter(joined[-1].kinds)
            both.update(step.kinds)
            joined[-1] = Step(step.minute, joined[-1].after, dict(sorted(both.items())))
        else:
            joined.append(step)
    return tuple(joined)


def _minutes(obj: Object) -> int:
    return MINUTES.get((group_of(text(obj, "apiVersion")), text(obj, "kind")), 0)


def _counts(made: list[Object]) -> dict[str, int]:
    return dict(sorted(Counter(text(o, "kind") for o in made).items()))


def warnings(world: World) -> list[str]:
    """What will bite later: every pool of a cloud cluster in one zone."""
    found = []
    for cluster in world.select("InferenceCluster"):
        pools = objects(cluster, "spec", "nodePools")
        zones = {zone for pool in pools for zone in (pool.get("zones") or ()) if isinstance(zone, str)}
        if text(cluster, "spec", "cluster", "source") in ("EKS", "GKE") and len(zones) == 1:
            name = text(cluster, "metadata", "name")
            found.append(
                f"InferenceCluster {name}: every pool is in zone {next(iter(zones))}; if that zone fails, so do all of "
                "its replicas. Spread pools over zones, or deployments over clusters with topologySpread."
            )
    return found
