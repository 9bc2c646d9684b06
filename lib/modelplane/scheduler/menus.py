"""What pools of a cluster an engine could use, best first, before anyone looks at what is free.

Clusters repeat: pools of the same kinds make the same menu, so that a thousand clusters are judged as a few.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from modelplane.scheduler.match import EFA, Distance, Fit, Judge, Matcher, Misfit
from modelplane.scheduler.ranking import Matched, common_currency, levels
from modelplane.scheduler.types import Engine, Pool, Reason, Vector, Workload

Money = tuple[str, Fraction]


@dataclass(frozen=True, slots=True, eq=False)
class Option:
    """Pools for the members of one engine, by their positions in the list of pools.

    `demand`: pool, units per pod and pods of what is claimed, the largest first. `unused`: mean share of a node that a
    claiming pod leaves. `taken`: cost per hour of the shares of nodes taken; None where a cost is unknown or currencies
    differ. `rank`: smaller is better; equal where nothing but what is free can decide.
    """

    pools: tuple[int, ...]
    fits: tuple[Fit, ...]
    matched: Matched
    demand: tuple[tuple[int, Vector, int], ...]
    unused: Fraction
    taken: Money | None
    rank: int = 0


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a pool is no option, and how near it came."""

    reason: Reason
    pool: int
    message: str
    distance: Distance = ()


@dataclass(frozen=True, slots=True, eq=False)
class Menu:
    """Options of one engine, the best first, and why other pools are none. `tied` where two have the same rank."""

    options: tuple[Option, ...]
    refusals: tuple[Refusal, ...]
    tied: bool


class Menus:
    """Makes the menus of one workload, each once."""

    def __init__(self, workload: Workload, judge: Judge) -> None:
        self._workload = workload
        self._matcher = Matcher(judge)
        self._made: dict[tuple[object, ...], tuple[Menu, ...]] = {}

    def of(self, pools: Sequence[Pool]) -> tuple[Menu, ...]:
        """The menu of each engine on these pools."""
        key = tuple((pool.shape, pool.fabric, pool.fabric_domain, pool.cost) for pool in pools)
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = tuple(self._menu(engine, pools) for engine in self._workload.engines)
        return found

    def matches(self, engine: Engine, pool: Pool) -> bool:
        """Whether every member of an engine fits the nodes of a pool."""
        return all(isinstance(self._matcher.fit(member, pool.shape), Fit) for member in engine.members)

    def _menu(self, engine: Engine, pools: Sequence[Pool]) -> Menu:
        options: list[Option] = []
        refusals: list[Refusal] = []
        for combination in _combinations(engine, pools):
            found = self._option(engine, pools, combination)
            if isinstance(found, Option):
                options.append(found)
            else:
                refusals.append(found)
        ranked = _ranked(options)
        return Menu(ranked, tuple(refusals), len({option.rank for option in ranked}) < len(ranked))

    def _option(self, engine: Engine, pools: Sequence[Pool], combination: tuple[int, ...]) -> Option | Refusal:
        fits: list[Fit] = []
        for member, at in zip(engine.members, combination, strict=True):
            fabric = engine.gang and pools[at].fabric == EFA
            fit = self._matcher.fit(member, pools[at].shape, fabric=fabric)
            if isinstance(fit, Misfit):
                return Refusal(fit.reason, at, fit.message, fit.distance)
            fits.append(fit)
        if not any(fit.requests for fit in fits):
            message = f"no request of engine {engine.name} claims a DRA device"
            return Refusal(Reason.NOTHING_CLAIMED, combination[0], message)
        return _priced(engine, pools, combination, fits)


def _combinations(engine: Engine, pools: Sequence[Pool]) -> Iterable[tuple[int, ...]]:
    """Pools for the members of an engine: one for all, or two that share a fabric domain."""
    for at in range(len(pools)):
        yield (at,) * len(engine.members)
    if engine.gang:
        for leader, one in enumerate(pools):
            for worker, two in enumerate(pools):
                if leader != worker and one.fabric_domain and one.fabric_domain == two.fabric_domain:
                    yield (leader, worker)


def _priced(engine: Engine, pools: Sequence[Pool], combination: tuple[int, ...], fits: Sequence[Fit]) -> Option:
    left, claiming = Fraction(0), 0
    demand: list[tuple[int, Vector, int]] = []
    costs: list[Money | None] = []
    for member, at, fit in zip(engine.members, combination, fits, strict=True):
        whole = sum(pools[at].shape.capacity)
        share = Fraction(sum(fit.usage), whole) if whole else Fraction(0)
        pods = member.pods * engine.copies
        if fit.requests:
            left += (1 - share) * pods
            claiming += pods
        if any(fit.usage):
            demand.append((at, fit.usage, pods))
            cost = pools[at].cost
            costs.append((cost.currency, cost.per_node_hour * share * pods) if cost else None)
    return Option(
        pools=combination,
        fits=tuple(fits),
        matched=tuple(device for fit in fits for device in fit.matched),
        demand=tuple(sorted(demand, key=lambda item: sum(item[1]), reverse=True)),
        unused=left / claiming,
        taken=total(costs),
    )


def total(costs: Sequence[Money | None]) -> Money | None:
    """The sum of costs in one currency; None where one is unknown or they differ."""
    if not common_currency(costs):
        return None
    known = [cost for cost in costs if cost is not None]
    return known[0][0], sum((amount for _, amount in known), Fraction(0))


def _ranked(options: Sequence[Option]) -> tuple[Option, ...]:
    """Rank options: smallest devices, least unused, cheapest."""
    if len(options) < 2:
        return tuple(options)
    by_level = levels(option.matched for option in options)
    comparable = common_currency([option.taken for option in options])

    def key(option: Option) -> tuple[int, Fraction, Fraction]:
        cost = option.taken[1] if comparable and option.taken else Fraction(0)
        return by_level[option.matched], option.unused, cost

    keys = sorted({key(option) for option in options})
    ranks = {found: at for at, found in enumerate(keys)}
    ordered = sorted(options, key=lambda option: ranks[key(option)])
    return tuple(Option(o.pools, o.fits, o.matched, o.demand, o.unused, o.taken, ranks[key(o)]) for o in ordered)
