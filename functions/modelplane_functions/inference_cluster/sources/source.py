"""What one cluster source differs in from another, as a value."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from modelplane.kube.objects import Object, integer, items, mapping, text

KUBECONFIG = "Kubeconfig"


@dataclass(frozen=True)
class NodePool:
    """A node pool of the spec with the block of its class that fits the source; counts are of nodes."""

    name: str
    count: int
    minimum: int | None
    maximum: int | None
    zones: tuple[str, ...]
    fabric: str
    capacity_block: Mapping[str, Any]
    recipe: Mapping[str, Any]

    @classmethod
    def read(cls, spec: Mapping[str, Any], recipe: Mapping[str, Any]) -> "NodePool":
        """Read an entry of `spec.nodePools`."""
        return cls(
            name=text(spec, "name"),
            count=count if (count := integer(spec, "nodeCount")) is not None else 1,
            minimum=integer(spec, "minNodeCount"),
            maximum=integer(spec, "maxNodeCount"),
            zones=tuple(z for z in items(spec, "zones") if isinstance(z, str)),
            fabric=text(spec, "fabric") or "None",
            capacity_block=mapping(spec, "capacityBlock"),
            recipe=recipe,
        )

    @property
    def nodes(self) -> int:
        """Nodes that the pool can have."""
        return self.count if self.maximum is None else self.maximum

    def sizes(self, floor: int) -> Object:
        """Counts as the child takes them; a pool without a maximum keeps its size, any other shrinks to `floor`."""
        if self.maximum is None:
            return {"nodeCount": self.count, "minNodeCount": self.count, "maxNodeCount": self.count}
        minimum = self.minimum if self.minimum is not None else min(floor, self.count)
        return {"nodeCount": self.count, "minNodeCount": minimum, "maxNodeCount": self.maximum}


@dataclass(frozen=True)
class Surroundings:
    """What a pool is judged against: the source's block, the child's spec and status, and the pools accepted so far."""

    block: Mapping[str, Any]
    status: Mapping[str, Any] = field(default_factory=dict)
    live: Mapping[str, Any] = field(default_factory=dict)
    accepted: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True)
class Child:
    """The XR that makes the cluster of a source.

    `fields` of the source's block are passed on as they are. `immutable` and `append_only` are paths in them that a
    live cluster cannot follow. `identity` is the type of the Secret that goes with the kubeconfig, if there is one.
    `entry` maps a pool to an entry of the child's nodePools; `check` says what is wrong with one, or nothing.
    `needs_node`: the cloud cannot grow a pool that has no node.
    """

    key: str
    kind: str
    usage: str
    fields: tuple[str, ...]
    immutable: tuple[tuple[str, ...], ...]
    append_only: tuple[tuple[str, ...], ...]
    entry: Callable[[NodePool], Object]
    check: Callable[[NodePool, Surroundings], str]
    identity: str = ""
    needs_node: bool = False


@dataclass(frozen=True)
class Source:
    """Where a cluster comes from.

    `name` is `spec.cluster.source`, `block` the field with its settings, there and in `provisioning` of a class.
    `teardown` is what the serving stack leaves behind. Without a `child` the cluster exists already.
    """

    name: str
    block: str
    teardown: str
    driver_root: str = "/"
    child: Child | None = None
