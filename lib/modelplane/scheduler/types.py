"""What the scheduler reasons about. Everything here is a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from functools import cached_property

from modelplane.dra.device import SYNTHETIC, Device
from modelplane.kube.taints import Taint, Toleration

Vector = tuple[int, ...]
"""Device units, one number per DRA entry of a pool, in published order."""

STANDALONE = "Standalone"
LEADER = "Leader"
WORKER = "Worker"

STALLED = "Stalled"
CLUSTER_GONE = "ClusterGone"


class Reason(StrEnum):
    """Why a cluster was refused, from the cluster as a whole to the last device."""

    NOT_READY = "NotReady"
    NO_GATEWAY = "NoGatewayAddress"
    TAINTED = "Tainted"
    WAITING_FOR_CACHE = "WaitingForCache"
    POD_SECURITY = "PodSecurity"
    NO_POOLS = "NoPools"
    NO_MATCHING_DEVICE = "NoMatchingDevice"
    NOTHING_CLAIMED = "NothingClaimed"
    SELECTOR_ERROR = "SelectorError"
    SELECTOR_BUDGET = "SelectorBudgetExceeded"
    TOO_COMPLEX = "TooComplex"
    POOL_TAINTED = "PoolTainted"
    POOL_NOT_READY = "PoolNotReady"
    STALLED = "Stalled"
    TOO_FEW_DEVICES = "TooFewFreeDevices"


@dataclass(frozen=True, eq=False)
class Shape:
    """The devices of one node. Equal lists of devices are read to one object, so that it is judged once."""

    devices: tuple[Device, ...]
    problems: tuple[str, ...] = ()

    @cached_property
    def positions(self) -> dict[str, int]:
        """Position in a `Vector` of every entry that is claimed, by its name."""
        claimed = [d.name for d in self.devices if d.claim != SYNTHETIC]
        return {name: at for at, name in enumerate(claimed)}

    @cached_property
    def capacity(self) -> Vector:
        """Units of one node."""
        return tuple(d.count for d in self.devices if d.claim != SYNTHETIC)

    @cached_property
    def by_class(self) -> dict[str, list[Device]]:
        """Claimed entries by deviceClassName, in published order."""
        found: dict[str, list[Device]] = {}
        for device in self.devices:
            if device.claim != SYNTHETIC:
                found.setdefault(device.device_class, []).append(device)
        return found


@dataclass(frozen=True, slots=True)
class Cost:
    """What a node costs for an hour."""

    per_node_hour: Fraction
    currency: str


@dataclass(frozen=True, slots=True)
class Pool:
    """`nodes` equal nodes. `free` is how many units of an entry were last published as unclaimed, node by node."""

    name: str
    nodes: int
    shape: Shape
    ready: bool = True
    fabric: str = ""
    fabric_domain: str = ""
    taints: tuple[Taint, ...] = ()
    cost: Cost | None = None
    free: Mapping[str, tuple[tuple[int, int], ...]] | None = None


@dataclass(frozen=True, slots=True)
class Cluster:
    """An InferenceCluster as published. `skipped` names pools that cannot be read."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    ready: bool = True
    deleting: bool = False
    gateway: str = ""
    privileged: bool = False
    taints: tuple[Taint, ...] = ()
    drain_timeouts: Mapping[Taint, int] = field(default_factory=dict)
    pools: Mapping[str, Pool] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """Devices that one pod asks for. `claim_selectors` are those that the cluster evaluates too."""

    name: str
    count: int
    selectors: tuple[str, ...] = ()
    claim_selectors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Member:
    """Pods of one role in one copy of an engine."""

    role: str
    pods: int
    requests: tuple[Request, ...] = ()


@dataclass(frozen=True, slots=True)
class Engine:
    """`copies` equal copies of one or two members."""

    name: str
    copies: int
    members: tuple[Member, ...]

    @property
    def gang(self) -> bool:
        """Whether a leader and workers form one copy."""
        return len(self.members) > 1


@dataclass(frozen=True, slots=True)
class Workload:
    """What one replica runs. `privileged` where a container asks for a capability that baseline refuses."""

    engines: tuple[Engine, ...]
    privileged: bool = False


@dataclass(frozen=True, slots=True)
class Charge:
    """Pods of a replica on one pool.

    `usage` is units per pod by device entry, None where the replica does not say; `requests` are then charged:
    (deviceClassName, count), in order.
    """

    pool: str
    pods: int
    usage: tuple[tuple[str, int], ...] | None
    requests: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Replica:
    """A ModelReplica, read for what scheduling needs.

    `synced`: what it says is about its present spec, and that spec was applied. `served`: it has served once.
    `exposed`: requests can be routed to it; known of one's own only. `replaces`: the one that leaves for it, name and
    uid as its annotation has them, the bare name once `retain` has found it.
    """

    namespace: str
    name: str
    cluster: str
    index: int = 0
    key: str = ""
    owner: str = ""
    deployment: str = ""
    revision: str = ""
    priority: int = 0
    created: str = ""
    charges: tuple[Charge, ...] = ()
    serving: bool = False
    served: bool = False
    synced: bool = True
    exposed: bool = True
    deleting: bool = False
    draining: bool = False
    replaces: str = ""
    blocked: str = ""
    drain_since: str = ""
    artifact: str = ""
    uid: str = ""

    @property
    def id(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.namespace, self.name

    @property
    def pools(self) -> tuple[str, ...]:
        """Names of the pools it uses, sorted."""
        return tuple(sorted({c.pool for c in self.charges}))


@dataclass(frozen=True, slots=True)
class Spread:
    """Prefer an even number of replicas in each value of a cluster label."""

    label: str
    max_skew: int = 1


@dataclass(frozen=True, slots=True)
class Strategy:
    """How an update replaces replicas; the fields of a Deployment's strategy."""

    recreate: bool = False
    max_unavailable: int = 1
    max_surge: int = 0
    paused: bool = False


@dataclass(frozen=True, slots=True)
class Deployment:
    """A ModelDeployment, read for what scheduling needs."""

    namespace: str
    name: str
    replicas: int
    workload: Workload
    uid: str = ""
    revision: str = ""
    priority: int = 0
    tolerations: tuple[Toleration, ...] = ()
    spread: Spread | None = None
    strategy: Strategy = Strategy()

    def owns(self, replica: Replica) -> bool:
        """Whether a replica is this deployment's, by name or by uid: one it has let go still is."""
        return replica.namespace == self.namespace and (
            replica.deployment == self.name or bool(self.uid and replica.owner == self.uid)
        )


@dataclass(frozen=True, slots=True)
class CacheGate:
    """The ModelCache that a deployment refers to: clusters where it is Ready, and the artifact it holds."""

    clusters: frozenset[str] = frozenset()
    artifact: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Closed:
    """Why nothing new may be placed anywhere; `hold` also stops everything else but scaling down."""

    reason: str
    message: str
    hold: bool = False


@dataclass(frozen=True)
class Fleet:
    """What is known when a deployment is scheduled.

    `clusters`: every cluster that is known, by name. `matching`: those that the deployment selects, None while that
    has not been answered. `gone`: asked for by name and absent. `others`: replicas of the fleet but those in `own`.
    `exact`: clusters whose replicas are all in `others`; None means every cluster.
    """

    clusters: Mapping[str, Cluster] = field(default_factory=dict)
    matching: frozenset[str] | None = frozenset()
    gone: frozenset[str] = frozenset()
    own: tuple[Replica, ...] = ()
    others: tuple[Replica, ...] = ()
    exact: frozenset[str] | None = None
    cache: CacheGate | None = None
    closed: Closed | None = None

    def is_exact(self, cluster: str) -> bool:
        """Whether all replicas on a cluster are known."""
        return self.exact is None or cluster in self.exact


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """One request of a pod's claim."""

    name: str
    device_class: str
    count: int
    selectors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MemberPlace:
    """The pool of a member, and what each of its pods claims there."""

    role: str
    pool: str
    requests: tuple[DeviceRequest, ...]
    usage: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class EnginePlace:
    """Where the members of one engine run."""

    name: str
    members: tuple[MemberPlace, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """A way to run a replica on a cluster, with the facts it is ranked by.

    `matched`: for each request, the capacity of the device it got. `unused`: share of a node's units that a pod leaves.
    `taken`: what the taken shares of nodes cost per hour, by currency. `pressure`: tenths of its fullest pool in use.
    """

    cluster: str
    engines: tuple[EnginePlace, ...]
    units: tuple[tuple[str, Vector, int], ...]
    matched: tuple[Device | None, ...] = ()
    unused: Fraction = Fraction(0)
    taken: tuple[str, Fraction] | None = None
    pressure: int = 0


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a cluster got nothing new; `pool` where one pool came closest. `message` holds the facts.

    `distance` orders refusals for the same reason, the nearest miss first.
    """

    cluster: str
    reason: Reason
    pool: str = ""
    message: str = ""
    distance: tuple[float, ...] = ()


class Fate(StrEnum):
    """What becomes of a replica that exists."""

    KEEP = "Keep"
    UPDATE = "Update"
    LEAVE = "Leave"
    """Stays until its replacement serves."""
    DROP = "Drop"


class Why(StrEnum):
    """Why a replica is updated, leaves or is dropped."""

    NONE = ""
    DELETED = "Deleted"
    DRAINED = "Drained"
    CLUSTER_GONE = "ClusterGone"
    OVERCOMMITTED = "Overcommitted"
    OUTDATED = "Outdated"
    STALLED = "Stalled"
    SURPLUS = "Surplus"
    REPLACED = "Replaced"


@dataclass(frozen=True, slots=True)
class Own:
    """A replica of the deployment as the day goes on; `place` is where an update puts it."""

    replica: Replica
    fate: Fate = Fate.KEEP
    why: Why = Why.NONE
    message: str = ""
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class Placement:
    """A replica to create; `replaces` names the one that leaves once it serves."""

    place: Place
    index: int
    replaces: str = ""


@dataclass(frozen=True, slots=True)
class Note:
    """Something to tell: `about` names replicas, `blocked` where they have no place."""

    reason: str
    message: str
    about: tuple[str, ...] = ()
    blocked: bool = False


@dataclass(frozen=True)
class Schedule:
    """What a deployment should have.

    `own`: every observed replica and its fate. `placed`: new ones. `missing`: slots without a place. `unreplaced`:
    names of leaving replicas without a replacement. `rejections`: for each cluster that was looked at for a slot that
    stayed empty. `rollout`: why an update does not go on. `sought` places were asked for, and `unmet` of them were not
    found; `look` names clusters whose replicas must be known before an update can go on. `closed`: why nothing new may
    be placed anywhere.
    """

    own: tuple[Own, ...] = ()
    placed: tuple[Placement, ...] = ()
    missing: int = 0
    unreplaced: tuple[str, ...] = ()
    rejections: tuple[Rejection, ...] = ()
    rollout: tuple[Note, ...] = ()
    sought: int = 0
    unmet: int = 0
    look: frozenset[str] = frozenset()
    closed: Closed | None = None
