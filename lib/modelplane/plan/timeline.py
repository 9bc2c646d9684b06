"""What a cluster is made of, and an estimate of when: what waits for what is the functions' own, minutes are typical.

A cluster is simulated once more with a clock: an object that takes minutes reports nothing until they are over, and
what comes up then has waited for it. References that providers resolve among themselves are not waited for.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from modelplane.kube.objects import Object, text
from modelplane.plan import fleet
from modelplane.plan.report import Built, Step
from modelplane.simulate import Key, World
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
NEEDED = ("InferenceClass", "InferenceGateway")
"""Kinds of ours that a cluster may look up while it is built."""

Path = tuple[str, ...]
"""Composition keys that lead from a cluster down to an object."""
Parts = Mapping[Path, Object]


@dataclass(frozen=True)
class Moment:
    """The minute in which an object is made, and by kind and composition key what it waited for last."""

    minute: int
    after: str


def built(world: World, start: Sequence[Object], before: Collection[Key] = ()) -> tuple[Built, ...]:
    """Every cluster that clouds are asked for, by the composite that nothing else composes.

    `start` holds the objects that the simulation started from; what is in `before` exists already and is left out.
    """
    found = []
    known: dict[tuple[object, ...], dict[Path, Moment]] = {}
    for root in world.store:
        if not fleet.is_composite(root) or controller_of(root):
            continue
        parts = dict(_parts(world, root))
        new = {path: obj for path, obj in parts.items() if key_of(obj) not in before}
        if not new or not any(text(o, "kind") in CLOUDS for o in (root, *parts.values())):
            continue
        # Clusters of the same parts are built in the same order.
        shape = (text(root, "kind"), *((path, text(new[path], "kind")) for path in sorted(new)))
        if shape not in known:
            known[shape] = _moments(world.clock, root, new, start)
        found.append(_built(root, new, known[shape]))
    return tuple(found)


def _parts(world: World, obj: Object, above: Path = ()) -> Iterator[tuple[Path, Object]]:
    for name, child in world.crossplane.observe(obj).items():
        yield (*above, name), child
        if fleet.is_composite(child):
            yield from _parts(world, child, (*above, name))


def _is_other(obj: Object) -> bool:
    return fleet.is_composite(obj) and not controller_of(obj) and text(obj, "kind") not in NEEDED


def _moments(clock: float, root: Object, parts: Parts, start: Sequence[Object]) -> dict[Path, Moment]:
    """When each object is made, in the order in which they are."""
    world = fleet.world(clock)
    world.providers.frozen |= {key_of(obj) for obj in parts.values() if _minutes(obj)}
    world.restore(obj for obj in start if key_of(obj) == key_of(root) or not _is_other(obj))
    made: dict[Path, Moment] = {}
    ends: dict[Path, int] = {}
    minute, after = 0, ""
    while True:
        world.settle()
        for path in sorted(parts.keys() - made.keys()):
            if world.store.get(key_of(parts[path])) is not None:
                made[path] = Moment(minute, after)
                if _minutes(parts[path]):
                    ends[path] = minute + _minutes(parts[path])
        if not ends:
            # What only comes up beside the rest of the plan is made last.
            return {
                path: made.get(path, Moment(minute, after)) for path in (*made, *sorted(parts.keys() - made.keys()))
            }
        # One at a time, also of those that are Ready in the same minute, so that each is known by what waited for it.
        done = min(ends, key=lambda p: (ends[p], p))
        minute, after = ends.pop(done), f"{text(parts[done], 'kind')} {done[-1]}"
        world.providers.frozen.discard(key_of(parts[done]))


def _built(root: Object, parts: Parts, moments: Mapping[Path, Moment]) -> Built:
    steps: dict[Moment, list[Object]] = {}
    for path, moment in moments.items():
        steps.setdefault(moment, []).append(parts[path])
    return Built(
        kind=text(root, "kind"),
        namespace=text(root, "metadata", "namespace"),
        name=text(root, "metadata", "name"),
        objects=len(parts),
        kinds=_counts(parts.values()),
        steps=tuple(Step(moment.minute, moment.after, _counts(made)) for moment, made in steps.items()),
        minutes=max(moment.minute + _minutes(parts[path]) for path, moment in moments.items()),
    )


def _minutes(obj: Object) -> int:
    return MINUTES.get((group_of(text(obj, "apiVersion")), text(obj, "kind")), 0)


def _counts(made: Collection[Object]) -> dict[str, int]:
    return dict(sorted(Counter(text(o, "kind") for o in made).items()))
