"""Fitting a replica to a cluster: a pool for every member of every engine, by an exact search over what is free."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from modelplane.dra.device import Device
from modelplane.kube.taints import NO_EXECUTE, Taint, untolerated
from modelplane.labels import POOL_REMOVED
from modelplane.scheduler.ledger import Ledger
from modelplane.scheduler.match import Judge
from modelplane.scheduler.menus import Menu, Menus, Option, total
from modelplane.scheduler.packing import Packing
from modelplane.scheduler.types import (
    Cluster,
    Deployment,
    Engine,
    EnginePlace,
    Fleet,
    MemberPlace,
    Place,
    Pool,
    Reason,
    Rejection,
    Vector,
)

SEARCH_LIMIT = 10_000
_CLOSENESS = {reason: at for at, reason in enumerate(Reason)}


class Placer:
    """Places replicas of one deployment."""

    def __init__(self, deployment: Deployment, fleet: Fleet, judge: Judge) -> None:
        self._deployment = deployment
        self._fleet = fleet
        self._menus = Menus(deployment.workload, judge)
        self._places: dict[tuple[Option, tuple[str, ...]], EnginePlace] = {}

    def gate(self, cluster: Cluster) -> Rejection | None:
        """Refuse a cluster as a whole, before any device is looked at."""
        name = cluster.name
        if cluster.deleting:
            return Rejection(name, Reason.NOT_READY, message="it is being deleted")
        if not cluster.ready:
            return Rejection(name, Reason.NOT_READY, message="its condition Ready is not True")
        if not cluster.gateway:
            return Rejection(name, Reason.NO_GATEWAY, message="it has not published a gateway address")
        taints = untolerated(self._deployment.tolerations, cluster.taints)
        if taints:
            return Rejection(name, Reason.TAINTED, message=f"taint {taints[0]} is not tolerated")
        return self.hard_gate(cluster)

    def hard_gate(self, cluster: Cluster) -> Rejection | None:
        """Refuse a cluster for what a replica that already runs there could not be updated past either."""
        if self._deployment.workload.privileged and not cluster.privileged:
            message = "it asks for IPC_LOCK, which needs spec.podSecurity: privileged on the cluster"
            return Rejection(cluster.name, Reason.POD_SECURITY, message=message)
        cache = self._fleet.cache
        if cache is not None and cluster.name not in cache.clusters:
            return Rejection(
                cluster.name, Reason.WAITING_FOR_CACHE, message=cache.message or "the cache is not Ready there"
            )
        return None

    def place(
        self,
        cluster: Cluster,
        ledger: Ledger,
        *,
        refused: frozenset[tuple[str, str]] = frozenset(),
        staying: frozenset[str] = frozenset(),
    ) -> Place | Rejection:
        """Find the best pools of a cluster for a whole replica.

        `refused` holds (cluster, pool) pairs that get nothing. Pools in `staying` are where the replica runs already:
        they are preferred, and neither a taint nor their readiness keeps it out.
        """
        if not cluster.pools:
            message = "; ".join(cluster.skipped) or "it publishes no pools"
            return Rejection(cluster.name, Reason.NO_POOLS, message=message)
        usable: list[Pool] = []
        rejections: list[Rejection] = []
        for pool in cluster.pools.values():
            rejection = self._refuse_pool(cluster, pool, refused, staying)
            if rejection is None:
                usable.append(pool)
            else:
                rejections.append(rejection)
        menus = self._menus.of(usable)
        for engine, menu in zip(self._deployment.workload.engines, menus, strict=True):
            if not menu.options:
                return self._refuse(cluster, usable, engine, menu, rejections)
        return _Search(self._deployment.workload.engines, cluster.name, usable, menus, ledger, staying).run(self)

    def _refuse_pool(
        self, cluster: Cluster, pool: Pool, refused: frozenset[tuple[str, str]], staying: frozenset[str]
    ) -> Rejection | None:
        if (cluster.name, pool.name) in refused:
            message = f"pool {pool.name}: a replica stalled there"
            return Rejection(cluster.name, Reason.STALLED, pool.name, message)
        if pool.name in staying:
            return None
        taints = _untolerated(self._deployment, pool.taints) if pool.taints else []
        if taints:
            message = f"pool {pool.name}: taint {taints[0]} is not tolerated"
            return Rejection(cluster.name, Reason.POOL_TAINTED, pool.name, message)
        if not pool.ready:
            return Rejection(cluster.name, Reason.POOL_NOT_READY, pool.name, f"pool {pool.name} is not ready")
        return None

    def _refuse(
        self, cluster: Cluster, usable: Sequence[Pool], engine: Engine, menu: Menu, rejections: Sequence[Rejection]
    ) -> Rejection:
        """The refusal that came closest to a place.

        A pool that is refused although its devices would do is closer than any whose devices do not.
        """
        would = [r for r in rejections if self._menus.matches(engine, cluster.pools[r.pool])]
        if not would:
            for refusal in menu.refusals:
                pool = usable[refusal.pool].name
                message = f"pool {pool}: {refusal.message}"
                would.append(Rejection(cluster.name, refusal.reason, pool, message, refusal.distance))
        return min(would or rejections, key=lambda r: (-_CLOSENESS[r.reason], r.distance))

    def engine_place(self, engine: Engine, option: Option, pools: Sequence[Pool]) -> EnginePlace:
        """An option with the names of its pools."""
        key = (option, tuple(pools[at].name for at in option.pools))
        found = self._places.get(key)
        if found is None:
            members = []
            for member, at, fit in zip(engine.members, option.pools, option.fits, strict=True):
                positions = pools[at].shape.positions.items()
                usage = tuple((name, fit.usage[unit]) for name, unit in positions if fit.usage[unit])
                members.append(MemberPlace(member.role, pools[at].name, fit.requests, usage))
            found = self._places[key] = EnginePlace(engine.name, tuple(members))
        return found


class _TooComplex(Exception):  # noqa: N818
    pass


class _Search:
    """Chooses an option for every engine so that all of them fit together."""

    def __init__(
        self,
        engines: Sequence[Engine],
        cluster: str,
        pools: Sequence[Pool],
        menus: Sequence[Menu],
        ledger: Ledger,
        staying: frozenset[str],
    ) -> None:
        self._engines = engines
        self._cluster = cluster
        self._pools = pools
        self._ledger = ledger
        self._choices = [self._ordered(menu, staying) for menu in menus]
        self._order = sorted(range(len(engines)), key=lambda at: len(self._choices[at]))
        self._steps = 0
        self._deepest = 0

    def run(self, placer: Placer) -> Place | Rejection:
        try:
            chosen = self._choose(0, {}, {})
        except _TooComplex:
            message = f"its pools leave too many choices (over {SEARCH_LIMIT})"
            return Rejection(self._cluster, Reason.TOO_COMPLEX, message=message)
        if chosen is None:
            at = self._order[self._deepest]
            return self._full(self._engines[at], self._choices[at][0])
        return self._build(placer, [chosen[at] for at in range(len(self._engines))])

    def _packing(self, at: int) -> Packing:
        return self._ledger.packing(self._cluster, self._pools[at])

    def _pressure(self, option: Option) -> int:
        """Tenths of its fullest pool in use."""
        most = 0
        for at in option.pools:
            pool = self._pools[at]
            whole = sum(pool.shape.capacity) * pool.nodes
            most = max(most, 10 * self._packing(at).used // whole if whole else 10)
        return most

    def _ordered(self, menu: Menu, staying: frozenset[str]) -> Sequence[Option]:
        """Options as on the menu; where the replica runs comes first, and of equals the emptiest."""
        options = menu.options
        if menu.tied:
            options = tuple(sorted(options, key=lambda option: (option.rank, self._pressure(option))))
        if staying:
            options = tuple(
                sorted(options, key=lambda option: not {self._pools[at].name for at in option.pools} <= staying)
            )
        return options

    def _choose(self, depth: int, state: dict[int, Packing], chosen: dict[int, Option]) -> dict[int, Option] | None:
        self._deepest = max(self._deepest, depth)
        if depth == len(self._order):
            return chosen
        engine = self._order[depth]
        for option in self._choices[engine]:
            self._steps += 1
            if self._steps > SEARCH_LIMIT:
                raise _TooComplex
            after = dict(state)
            for at, usage, pods in option.demand:
                packing = (after.get(at) or self._packing(at)).add(usage, pods)
                if packing is None:
                    break
                after[at] = packing
            else:
                found = self._choose(depth + 1, after, {**chosen, engine: option})
                if found is not None:
                    return found
        return None

    def _build(self, placer: Placer, chosen: Sequence[Option]) -> Place:
        units: list[tuple[str, Vector, int]] = []
        matched: list[Device | None] = []
        left, copies = Fraction(0), 0
        for engine, option in zip(self._engines, chosen, strict=True):
            units.extend((self._pools[at].name, usage, pods) for at, usage, pods in option.demand)
            matched.extend(option.matched)
            left += option.unused * engine.copies
            copies += engine.copies
        return Place(
            cluster=self._cluster,
            engines=tuple(
                placer.engine_place(engine, option, self._pools)
                for engine, option in zip(self._engines, chosen, strict=True)
            ),
            units=tuple(units),
            matched=tuple(matched),
            unused=left / copies if len(chosen) > 1 else chosen[0].unused,
            taken=total([option.taken for option in chosen]) if len(chosen) > 1 else chosen[0].taken,
            pressure=max(self._pressure(option) for option in chosen),
        )

    def _full(self, engine: Engine, option: Option) -> Rejection:
        for at, usage, pods in option.demand:
            pool = self._pools[at]
            room = self._packing(at).room(usage)
            if room < pods:
                positions = pool.shape.positions.items()
                wanted = ", ".join(f"{usage[unit]} {name}" for name, unit in positions if usage[unit])
                message = (
                    f"pool {pool.name}: engine {engine.name} needs {pods} pod{'s' if pods > 1 else ''} of {wanted}, "
                    f"room for {room} on {pool.nodes} node{'s' if pool.nodes != 1 else ''}"
                )
                return Rejection(self._cluster, Reason.TOO_FEW_DEVICES, pool.name, message)
        pool = self._pools[option.pools[0]]
        message = f"pool {pool.name}: its engines do not fit together"
        return Rejection(self._cluster, Reason.TOO_FEW_DEVICES, pool.name, message)


def _untolerated(deployment: Deployment, taints: Iterable[Taint]) -> list[Taint]:
    """Taints that keep a deployment away; nothing tolerates that of a removed pool."""
    known = list(taints)
    return [t for t in known if t.key == POOL_REMOVED] or untolerated(deployment.tolerations, known)


def untolerated_execute(deployment: Deployment, taints: Iterable[Taint]) -> list[Taint]:
    """NoExecute taints that drain a deployment's replicas, in the order given."""
    return _untolerated(deployment, [taint for taint in taints if taint.effect == NO_EXECUTE])
