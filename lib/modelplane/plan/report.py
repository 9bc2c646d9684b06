"""What a plan says, as plain values: `-o json` prints exactly this, `table` draws it.

Shape of the JSON: an object with `placements[]`, `unplaced[]`, `pools[]`, `services[]`, `composites[]`, `changes`,
`warnings[]`, `assumed[]`, `effort`, `cost` and `built[]`, whose fields are those of the classes below.
"""

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Devices:
    """Units of one device entry of a pool that a replica holds."""

    pool: str
    device: str
    count: int


@dataclass(frozen=True)
class Placed:
    """One replica and where it is; `ready` says whether it would serve."""

    namespace: str
    deployment: str
    replica: str
    cluster: str
    devices: tuple[Devices, ...]
    ready: bool


@dataclass(frozen=True)
class Refusal:
    """Why clusters were refused: how many for this reason, one of them, and what it said."""

    reason: str
    clusters: int
    example: str
    message: str


@dataclass(frozen=True)
class Unplaced:
    """Replicas of a deployment that have no place; `nearest` says what was almost enough."""

    namespace: str
    deployment: str
    missing: int
    desired: int
    reason: str
    message: str
    refusals: tuple[Refusal, ...]
    nearest: tuple[str, ...]


@dataclass(frozen=True)
class PoolUse:
    """Units of one device entry of one pool; `stranded` are free units on nodes that are partly used."""

    cluster: str
    pool: str
    class_name: str
    device: str
    nodes: int
    nodes_used: int
    total: int
    used: int
    stranded: int
    ready: bool


@dataclass(frozen=True)
class Backend:
    """One endpoint of a service; `share` is its part of the traffic in percent."""

    endpoint: str
    cluster: str
    weight: int
    share: float
    healthy: bool


@dataclass(frozen=True)
class Served:
    """One service and the address it answers on, empty while it has none."""

    namespace: str
    name: str
    url: str
    ready: bool
    backends: tuple[Backend, ...]


@dataclass(frozen=True)
class Composite:
    """One object in the composition tree; `manifest` names what a provider object holds."""

    kind: str
    namespace: str
    name: str
    key: str
    ready: bool | None
    manifest: str
    cluster: str
    detail: str
    children: tuple["Composite", ...]


@dataclass(frozen=True)
class Step:
    """Objects by kind that are made in this minute, once what `after` names by kind and composition key is Ready."""

    minute: int
    after: str
    kinds: dict[str, int]


@dataclass(frozen=True)
class Built:
    """A cluster that a cloud is asked for: its new objects by kind, and an estimate of when they are all Ready."""

    kind: str
    namespace: str
    name: str
    objects: int
    kinds: dict[str, int]
    steps: tuple[Step, ...]
    minutes: int


@dataclass(frozen=True)
class Changes:
    """Objects that a plan from a live cluster's objects adds, changes and deletes."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()


@dataclass(frozen=True)
class Effort:
    """What the simulation took; sizes are in bytes."""

    rounds: int
    reconciles: int
    calls: int
    objects: int


@dataclass(frozen=True)
class Report:
    """A whole plan.

    `assumed` names Secrets that the manifests do not hold. `cost` is per hour by currency, of nodes that are used and
    of all nodes.
    """

    placements: tuple[Placed, ...]
    unplaced: tuple[Unplaced, ...]
    pools: tuple[PoolUse, ...]
    services: tuple[Served, ...]
    composites: tuple[Composite, ...]
    warnings: tuple[str, ...]
    assumed: tuple[str, ...]
    effort: Effort
    changes: Changes | None = None
    cost: dict[str, dict[str, str]] = field(default_factory=dict)
    built: tuple[Built, ...] = ()

    def raw(self) -> dict[str, Any]:
        """The report as dictionaries and lists."""
        return asdict(self)
