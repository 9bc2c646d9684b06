"""Which node pools there are, which leave, and whether the cluster's own controllers have nodes."""

from collections.abc import Callable, Sequence
from typing import Any, Generic

from modelplane.clusters.desk import Desk
from modelplane.clusters.spec import PoolT
from modelplane.kube.objects import Resource

ROLE = "modelplane.ai/pool-role"
"""Label of a pool's resources: the pool's role, which must be known once the spec no longer has it."""


class Pools(Generic[PoolT]):
    """The pools of one pass.

    `system` is added where the spec has no pool of role System: gateways, webhooks and autoscalers must run somewhere.
    `prefix` starts the key of a pool's nodes, `others` those of what else a pool is made of.
    """

    def __init__(self, desk: Desk[Any], system: PoolT, prefix: str, *others: str) -> None:
        self._desk = desk
        self._prefix = prefix
        self._prefixes = (prefix, *others)
        own: Sequence[PoolT] = desk.spec.pools
        self.wanted: list[PoolT] = [system, *own] if desk.spec.injected else list(own)
        self.problems: dict[str, str] = {}
        """What is wrong with pools, by name."""

    def key(self, pool: str) -> str:
        """Composition key of a pool's nodes."""
        return self._prefix + pool

    @property
    def system_keys(self) -> list[str]:
        """Keys of the system pools that the spec asks for."""
        return [self.key(p.name) for p in self.wanted if p.system]

    @property
    def system_ready(self) -> bool:
        """Whether any system pool has nodes, be it one that is about to leave."""
        return any(map(self._desk.ready, self.system_keys)) or any(
            found.ready and _is_system(found)
            for key, found in self._desk.req.observed.items()
            if key.startswith(self._prefix)
        )

    def compose(self, problem: Callable[[PoolT], str], build: Callable[[PoolT], None]) -> None:
        """Build every pool that can be, and let go of those that the spec no longer has.

        A bad pool that runs keeps its last shape; the others go on without it. A system pool leaves once another one
        that stays is Ready.
        """
        for pool in self.wanted:
            why = pool.problem() or problem(pool)
            if why:
                self.problems[pool.name] = why
            else:
                build(pool)
        keys = {prefix + p.name for p in self.wanted for prefix in self._prefixes}
        replaced = any(map(self._desk.ready, self.system_keys))
        for key, found in self._desk.req.observed.items():
            if key.startswith(self._prefixes) and key not in keys and (replaced or not _is_system(found)):
                self._desk.rsp.drop(key)


def _is_system(found: Resource) -> bool:
    return found.labels.get(ROLE) == "System"
