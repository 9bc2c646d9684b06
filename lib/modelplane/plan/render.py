"""What one composite composes in one reconcile, as `crossplane composition render` prints it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from modelplane.kube.objects import Object, mapping, objects, text
from modelplane.plan import fleet
from modelplane.plan.manifests import Manifest
from modelplane.simulate import Key
from modelplane.simulate.store import key_of
from modelplane.xfn.caller import Result

CLOCK = 1_704_067_200.0
"""2024-01-01T00:00:00Z, the time at which Crossplane renders."""


@dataclass(frozen=True)
class Rendered:
    """One composite after one reconcile: itself, what it composed by composition key, its results; `error` if fatal."""

    key: Key
    composite: Object
    composed: Sequence[Object]
    results: Sequence[Result]
    error: str


def render(manifests: Sequence[Manifest]) -> Iterator[Rendered]:
    """Render every composite among the manifests by kind, namespace and name; each sees the others as they are written.

    Raises ManifestError for manifests that an API server would refuse.
    """
    fleet.check(manifests)
    start = fleet.world(CLOCK)
    fleet.apply(start, manifests)
    stored = list(start.store)
    for obj in stored:
        if fleet.is_composite(obj):
            yield _render(key_of(obj), stored)


def _render(key: Key, stored: Sequence[Object]) -> Rendered:
    world = fleet.world(CLOCK)
    world.restore(stored)
    done = world.crossplane.reconcile(key)
    xr = world.store.get(key)
    assert xr is not None  # noqa: S101 - a reconcile of a live composite never removes it
    shown: Object = {
        "apiVersion": text(xr, "apiVersion"),
        "kind": text(xr, "kind"),
        "metadata": {k: v for k, v in mapping(xr, "metadata").items() if k in ("name", "namespace")},
        "spec": {"crossplane": {"resourceRefs": mapping(xr, "spec", "crossplane").get("resourceRefs", [])}},
        "status": _status(xr),
    }
    composed = [] if done.error or done.answer is None else _composed(world.crossplane.observe(xr), done.answer.desired)
    return Rendered(key, shown, composed, done.events, done.error)


def _status(xr: Object) -> Object:
    """Status as Crossplane renders it, where a composite has no generation yet."""
    conditions = [
        {k: v for k, v in condition.items() if k != "observedGeneration"}
        for condition in objects(xr, "status", "conditions")
    ]
    return {**mapping(xr, "status"), "conditions": conditions}


def _composed(observed: dict[str, Object], desired: object) -> list[Object]:
    return [_written(observed[key]) for key in sorted(observed) if isinstance(desired, dict) and key in desired]


def _written(obj: Object) -> Object:
    """Keep of a composed object what Crossplane applied."""
    dropped = ("uid", "creationTimestamp", "generation", "resourceVersion")
    meta = {k: v for k, v in mapping(obj, "metadata").items() if k not in dropped}
    return {**{k: v for k, v in obj.items() if k != "status"}, "metadata": meta}
