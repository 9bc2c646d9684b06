"""Fitting a replica to a cluster: a pool for every member of every engine, by an exact search over pools."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from modelplane.dra.device import Device
from modelplane.kube.taints import Taint, untolerated
from modelplane.labels import POOL_REMOVED
from modelplane.scheduler.ledger import Ledger
from modelplane.scheduler.match import EFA, Fit, Judge, Matcher, Misfit
from modelplane.scheduler.packing import Packing
from modelplane.scheduler.ranking import common_currency, levels
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


@dataclass(frozen=True, slots=True)
class _Option:
    """Pools for the members of one engine."""

    pools: tuple[Pool, ...]
    fits: tuple[Fit, ...]
    unused: Fraction
    shares: tuple[Fraction, ...]

    @property
    def matched(self) -> tuple[Device | None, ...]:
        return tuple(device for fit in self.fits for device in fit.matched)


class Placer:
    """Places replicas of one deployment."""

    def __init__(self, deployment: Deployment, fleet: Fleet, judge: Judge) -> None:
        self._deployment = deployment
        self._fleet = fleet
        self._matcher = Matcher(judge)
        self._static: dict[tuple[object, ...], tuple[Fraction, tuple[Fraction, ...]]] = {}

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
        rejections: list[tuple[int, Rejection]] = []
        for pool in cluster.pools.values():
            rejection = self._refuse_pool(cluster, pool, refused, staying)
            if rejection is None:
                usable.append(pool)
            else:
                rejections.append((0, rejection))
        packings = {pool.name: ledger.packing(cluster.name, pool) for pool in usable}
        choices: list[list[_Option]] = []
        for engine in self._deployment.workload.engines:
            options, misfits = self._options(engine, usable, cluster.name)
            if not options:
                matching = self._would_match(engine, cluster, rejections)
                return _closest(matching or misfits or rejections, cluster.name)
            choices.append(self._sorted(options, packings, staying))
        return self._search(cluster, choices, packings)

    def _refuse_pool(
        self, cluster: Cluster, pool: Pool, refused: frozenset[tuple[str, str]], staying: frozenset[str]
    ) -> Rejection | None:
        if (cluster.name, pool.name) in refused:
            message = f"pool {pool.name}: a replica stalled there"
            return Rejection(cluster.name, Reason.STALLED, pool.name, message)
        if pool.name in staying:
            return None
        taints = [t for t in pool.taints if t.key == POOL_REMOVED] or untolerated(
            self._deployment.tolerations, pool.taints
        )
        if taints:
            message = f"pool {pool.name}: taint {taints[0]} is not tolerated"
            return Rejection(cluster.name, Reason.POOL_TAINTED, pool.name, message)
        if not pool.ready:
            return Rejection(cluster.name, Reason.POOL_NOT_READY, pool.name, f"pool {pool.name} is not ready")
        return None

    def _would_match(
        self, engine: Engine, cluster: Cluster, rejections: Sequence[tuple[int, Rejection]]
    ) -> list[tuple[int, Rejection]]:
        """The refusals of pools whose devices would do."""
        found = []
        for missing, rejection in rejections:
            pool = cluster.pools[rejection.pool]
            if all(isinstance(self._matcher.fit(member, pool.shape), Fit) for member in engine.members):
                found.append((missing, rejection))
        return found

    def _options(
        self, engine: Engine, pools: Sequence[Pool], cluster: str
    ) -> tuple[list[_Option], list[tuple[int, Rejection]]]:
        options: list[_Option] = []
        misfits: list[tuple[int, Rejection]] = []
        for combination in _combinations(engine, pools):
            fits: list[Fit] = []
            for member, pool in zip(engine.members, combination, strict=True):
                fit = self._matcher.fit(member, pool.shape, fabric=engine.gang and pool.fabric == EFA)
                if isinstance(fit, Misfit):
                    message = f"pool {pool.name}: {fit.message}"
                    misfits.append((fit.missing, Rejection(cluster, fit.reason, pool.name, message)))
                    break
                fits.append(fit)
            else:
                if any(fit.requests for fit in fits):
                    unused, shares = self._shares(engine, combination, fits)
                    options.append(_Option(combination, tuple(fits), unused, shares))
                else:
                    message = f"pool {combination[0].name}: no request of engine {engine.name} claims a DRA device"
                    rejection = Rejection(cluster, Reason.NOTHING_CLAIMED, combination[0].name, message)
                    misfits.append((0, rejection))
        return options, misfits

    def _shares(
        self, engine: Engine, pools: Sequence[Pool], fits: Sequence[Fit]
    ) -> tuple[Fraction, tuple[Fraction, ...]]:
        """Mean share of a node that a claiming pod leaves unused, and shares of nodes each member takes in all."""
        key = (engine, *(pool.shape for pool in pools), *(pool.fabric for pool in pools))
        found = self._static.get(key)
        if found is None:
            left, claiming, shares = Fraction(0), 0, []
            for member, pool, fit in zip(engine.members, pools, fits, strict=True):
                whole = sum(pool.shape.capacity)
                share = Fraction(sum(fit.usage), whole) if whole else Fraction(0)
                pods = member.pods * engine.copies
                shares.append(share * pods)
                if fit.requests:
                    left += (1 - share) * pods
                    claiming += pods
            found = self._static[key] = (left / claiming if claiming else Fraction(0), tuple(shares))
        return found

    def _sorted(self, options: list[_Option], packings: dict[str, Packing], staying: frozenset[str]) -> list[_Option]:
        """Options by preference: where it runs, smallest devices, least unused, cheapest, emptiest, first."""
        if len(options) == 1:
            return options
        ranks = levels(option.matched for option in options)
        costs = [_taken(option) for option in options]
        comparable = common_currency(costs)

        def key(at: int) -> tuple[object, ...]:
            option, cost = options[at], costs[at]
            return (
                bool(staying) and not {pool.name for pool in option.pools} <= staying,
                ranks[option.matched],
                option.unused,
                cost[1] if comparable and cost else 0,
                max(_pressure(pool, packings[pool.name]) for pool in option.pools),
                at,
            )

        return [options[at] for at in sorted(range(len(options)), key=key)]  # type: ignore[arg-type]

    def _search(
        self, cluster: Cluster, choices: list[list[_Option]], packings: dict[str, Packing]
    ) -> Place | Rejection:
        engines = self._deployment.workload.engines
        order = sorted(range(len(engines)), key=lambda at: (len(choices[at]), at))
        steps = 0
        deepest = 0

        def choose(depth: int, state: dict[str, Packing], chosen: dict[int, _Option]) -> dict[int, _Option] | None:
            nonlocal steps, deepest
            deepest = max(deepest, depth)
            if depth == len(order):
                return chosen
            at = order[depth]
            for option in choices[at]:
                steps += 1
                if steps > SEARCH_LIMIT:
                    raise _TooComplex
                after = _add(engines[at], option, state)
                if after is None:
                    continue
                found = choose(depth + 1, after, {**chosen, at: option})
                if found is not None:
                    return found
            return None

        try:
            chosen = choose(0, packings, {})
        except _TooComplex:
            message = f"its pools leave too many choices (over {SEARCH_LIMIT})"
            return Rejection(cluster.name, Reason.TOO_COMPLEX, message=message)
        if chosen is None:
            at = order[deepest]
            return _full(cluster, engines[at], choices[at][0], packings)
        return _build(cluster, engines, [chosen[at] for at in range(len(engines))], packings)


class _TooComplex(Exception):  # noqa: N818
    pass


def _combinations(engine: Engine, pools: Sequence[Pool]) -> Iterable[tuple[Pool, ...]]:
    """Pools for the members of an engine: one for all, or two that share a fabric domain."""
    for pool in pools:
        yield (pool,) * len(engine.members)
    if engine.gang:
        for leader in pools:
            for worker in pools:
                if leader is not worker and leader.fabric_domain and leader.fabric_domain == worker.fabric_domain:
                    yield (leader, worker)


def _members(engine: Engine, option: _Option) -> list[tuple[str, Vector, int]]:
    """Pool, units per pod and pods of members that claim something, the largest first."""
    found = [
        (pool.name, fit.usage, member.pods * engine.copies)
        for member, pool, fit in zip(engine.members, option.pools, option.fits, strict=True)
        if any(fit.usage)
    ]
    return sorted(found, key=lambda item: sum(item[1]), reverse=True)


def _add(engine: Engine, option: _Option, state: dict[str, Packing]) -> dict[str, Packing] | None:
    after = dict(state)
    for pool, usage, pods in _members(engine, option):
        packing = after[pool].add(usage, pods)
        if packing is None:
            return None
        after[pool] = packing
    return after


def _build(
    cluster: Cluster, engines: Sequence[Engine], chosen: Sequence[_Option], packings: dict[str, Packing]
) -> Place:
    placed: list[EnginePlace] = []
    units: list[tuple[str, Vector, int]] = []
    matched: list[Device | None] = []
    left, pods, pressure = Fraction(0), 0, 0
    for engine, option in zip(engines, chosen, strict=True):
        members = []
        for member, pool, fit in zip(engine.members, option.pools, option.fits, strict=True):
            usage = tuple((name, fit.usage[at]) for name, at in pool.shape.positions.items() if fit.usage[at])
            members.append(MemberPlace(member.role, pool.name, fit.requests, usage))
            pressure = max(pressure, _pressure(pool, packings[pool.name]))
        placed.append(EnginePlace(engine.name, tuple(members)))
        units.extend(_members(engine, option))
        matched.extend(option.matched)
        left += option.unused * engine.copies
        pods += engine.copies
    costs = [_taken(option) for option in chosen]
    taken = None
    first = costs[0]
    if first is not None and common_currency(costs):
        taken = (first[0], sum((cost[1] for cost in costs if cost), Fraction(0)))
    return Place(cluster.name, tuple(placed), tuple(units), tuple(matched), left / pods, taken, pressure)


def _taken(option: _Option) -> tuple[str, Fraction] | None:
    """Cost per hour of the shares of nodes an option takes; None where a cost is unknown or currencies differ."""
    total, currency = Fraction(0), ""
    for pool, share in zip(option.pools, option.shares, strict=True):
        if not share:
            continue
        if pool.cost is None or (currency and pool.cost.currency != currency):
            return None
        currency = pool.cost.currency
        total += pool.cost.per_node_hour * share
    return (currency, total) if currency else None


def _pressure(pool: Pool, packing: Packing) -> int:
    whole = sum(pool.shape.capacity) * pool.nodes
    return 10 * packing.used // whole if whole else 10


def _full(cluster: Cluster, engine: Engine, option: _Option, packings: dict[str, Packing]) -> Rejection:
    for member, pool, fit in zip(engine.members, option.pools, option.fits, strict=True):
        pods = member.pods * engine.copies
        packing = packings[pool.name]
        room = packing.room(fit.usage)
        if any(fit.usage) and room < pods:
            wanted = ", ".join(f"{fit.usage[at]} {name}" for name, at in pool.shape.positions.items() if fit.usage[at])
            message = (
                f"pool {pool.name}: engine {engine.name} needs {pods} pod{'s' if pods > 1 else ''} of {wanted}, "
                f"room for {room} on {pool.nodes} node{'s' if pool.nodes != 1 else ''}"
            )
            return Rejection(cluster.name, Reason.TOO_FEW_DEVICES, pool.name, message)
    message = "its engines do not fit together"
    return Rejection(cluster.name, Reason.TOO_FEW_DEVICES, option.pools[0].name, message)


def _closest(rejections: Sequence[tuple[int, Rejection]], cluster: str) -> Rejection:
    """The refusal that came closest to a place; of equals the one with the fewest requests unmet, then the first."""
    if not rejections:
        return Rejection(cluster, Reason.NO_POOLS, message="it publishes no pools")
    best = min(range(len(rejections)), key=lambda at: (-_CLOSENESS[rejections[at][1].reason], rejections[at][0], at))
    return rejections[best][1]


def untolerated_execute(deployment: Deployment, taints: Iterable[Taint]) -> list[Taint]:
    """NoExecute taints that drain a deployment's replicas, in the order given."""
    return [
        taint
        for taint in taints
        if taint.effect == "NoExecute" and (taint.key == POOL_REMOVED or untolerated(deployment.tolerations, [taint]))
    ]
