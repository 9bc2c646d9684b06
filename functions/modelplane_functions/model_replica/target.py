"""The workload cluster of a replica: how to reach it, and what its pools are."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from modelplane.composed import ABANDON, FULL, KEEP, ProviderConfigRef, remote_object
from modelplane.composed.remote import SUCCESSFUL_CREATE, Patch
from modelplane.kube.objects import Object, Resource, integer, mapping, objects, text
from modelplane.kube.taints import NO_EXECUTE, NO_SCHEDULE, Taint
from modelplane.labels import POOL_REMOVED, TEARDOWN

BASELINE, PRIVILEGED = "baseline", "privileged"
PREFER_NO_SCHEDULE = "PreferNoSchedule"


@dataclass(frozen=True)
class Pool:
    """A node pool as its cluster publishes it; `units` are device units of each entry on one node."""

    taints: tuple[Taint, ...] = ()
    units: Mapping[str, int] = field(default_factory=dict)
    drivers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Drivers by DeviceClass."""


@dataclass(frozen=True)
class Target:
    """Where the Objects of a replica go."""

    namespace: str
    config: ProviderConfigRef
    pod_security: str = BASELINE
    abandon: bool = False
    pools: Mapping[str, Pool] = field(default_factory=dict)

    def wrap(
        self,
        manifest: Object,
        *,
        readiness: str = SUCCESSFUL_CREATE,
        annotations: Mapping[str, str] | None = None,
        patches: tuple[Patch, ...] = (),
        shared: bool = False,
    ) -> Object:
        """Wrap a manifest in an Object; what is `shared` with other replicas is never deleted."""
        return remote_object(
            manifest,
            self.config,
            namespace=self.namespace,
            annotations=annotations,
            policies=ABANDON if self.abandon else KEEP if shared else FULL,
            readiness=readiness,
            patches=patches,
        )


def read(cluster: Resource, namespace: str, observed: Mapping[str, Resource]) -> Target | None:
    """Read an InferenceCluster; None while nobody knows how to reach it.

    A provider config that the cluster no longer publishes is taken from the Objects that exist.
    """
    name = text(cluster.status, "providerConfigRef", "name")
    config = ProviderConfigRef(name) if name else _config_of(observed)
    if config is None:
        return None
    return Target(
        namespace=namespace,
        config=config,
        pod_security=PRIVILEGED if text(cluster.spec, "podSecurity") == PRIVILEGED else BASELINE,
        abandon=cluster.annotations.get(TEARDOWN) == "abandon",
        pools={text(p, "name"): _pool(p) for p in objects(cluster.status, "gpuPools")},
    )


def _config_of(observed: Mapping[str, Resource]) -> ProviderConfigRef | None:
    for resource in observed.values():
        ref = mapping(resource.spec, "providerConfigRef")
        if text(ref, "name"):
            return ProviderConfigRef(text(ref, "name"), text(ref, "kind") or "ClusterProviderConfig")
    return None


def _pool(raw: Mapping[str, Any]) -> Pool:
    taints = []
    for entry in objects(raw, "taints"):
        taint = Taint.read(entry)
        if taint and taint.key != POOL_REMOVED and taint.effect in (NO_SCHEDULE, NO_EXECUTE, PREFER_NO_SCHEDULE):
            taints.append(taint)
    units: dict[str, int] = {}
    drivers: dict[str, set[str]] = {}
    for device in objects(raw, "devices"):
        if text(device, "name"):
            units[text(device, "name")] = integer(device, "count") or 1
        if text(device, "deviceClassName") and text(device, "driver"):
            drivers.setdefault(text(device, "deviceClassName"), set()).add(text(device, "driver"))
    return Pool(tuple(taints), units, {k: tuple(sorted(v)) for k, v in drivers.items()})
