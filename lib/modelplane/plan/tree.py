"""The composition tree: what composes what, down to the objects on workload clusters."""

from modelplane.kube.objects import Condition, Object, Resource, mapping, text
from modelplane.plan import fleet
from modelplane.plan.report import Composite
from modelplane.simulate import World
from modelplane.simulate.crossplane import RESOURCE_ANNOTATION
from modelplane.simulate.store import controller_of, group_of, key_of

NEGATIVE = frozenset({"Degraded", "DrainBlocked", "EndpointsTruncated", "OutOfScope"})
"""Conditions that are good when False."""
HARMLESS = frozenset({("SmartRouting", "SinglePod")})
"""Types and reasons that are as they should be although they are not True."""


def is_good(condition: Condition) -> bool:
    """Whether a condition is as it should be."""
    if (condition.type, condition.reason) in HARMLESS:
        return True
    return (condition.status == "True") is not (condition.type in NEGATIVE)


def grow(world: World) -> tuple[Composite, ...]:
    """Every composite that nothing else composes, with all below it."""
    return tuple(_node(world, obj) for obj in world.store if fleet.is_composite(obj) and not controller_of(obj))


def _node(world: World, obj: Object) -> Composite:
    resource = Resource.of(obj)
    children: tuple[Composite, ...] = ()
    if fleet.is_composite(obj):
        observed = world.crossplane.observe(obj)
        children = tuple(_node(world, observed[key]) for key in sorted(observed))
    return Composite(
        kind=resource.kind,
        namespace=resource.namespace,
        name=resource.name,
        key=text(obj, "metadata", "annotations", RESOURCE_ANNOTATION),
        ready=resource.ready if "Ready" in resource.conditions else None,
        manifest=_manifest(obj),
        cluster=text(obj, "spec", "clusterName"),
        detail="" if resource.ready else reason(world, obj),
        children=children,
    )


def _manifest(obj: Object) -> str:
    manifest = mapping(obj, "spec", "forProvider", "manifest")
    if manifest:
        namespace = text(manifest, "metadata", "namespace")
        name = text(manifest, "metadata", "name")
        return f"{text(manifest, 'kind')} {namespace}/{name}" if namespace else f"{text(manifest, 'kind')} {name}"
    if text(obj, "kind") == "ProviderConfig":
        return f"{text(obj, 'metadata', 'name')} ({group_of(text(obj, 'apiVersion'))})"
    chart = mapping(obj, "spec", "forProvider", "chart")
    return f"chart {text(chart, 'name')} {text(chart, 'version')}" if chart else ""


def reason(world: World, obj: Object) -> str:
    """Why a composite is not ready: its error, or its first condition that is not True and says something."""
    last = world.last.get(key_of(obj))
    if last is not None and last.error:
        return last.error
    for condition in Resource.of(obj).conditions.values():
        if condition.message and not is_good(condition):
            return f"{condition.type}={condition.status} {condition.reason}: {condition.message}"
    return ""
