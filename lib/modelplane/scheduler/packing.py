"""Packing pods on equal nodes, in device units.

First-fit decreasing decides what is placed; `packable` is the exact question, asked before anybody is told to yield.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import lcm

from modelplane.scheduler.types import Vector

SEARCH_LIMIT = 10_000
KNOWN_MAX = 16_384


@dataclass(frozen=True, slots=True)
class Packing:
    """What is free: `opened` counts used nodes by their free units, `unopened` are empty nodes.

    `over` is how many pods found no node.
    """

    capacity: Vector
    opened: tuple[tuple[Vector, int], ...]
    unopened: int
    over: int = 0

    @property
    def free(self) -> dict[Vector, int]:
        """Nodes by what is free on them, empty ones included."""
        found = dict(self.opened)
        if self.unopened:
            found[self.capacity] = found.get(self.capacity, 0) + self.unopened
        return found

    def add(self, usage: Vector, pods: int) -> Packing | None:
        """The packing with more pods, each on the fullest node it fits; None where they do not all fit."""
        return _added(self, usage, pods)

    def room(self, usage: Vector) -> int:
        """How many pods of one kind fit at most."""
        if self.over:
            return 0
        return sum(_times(free, usage) * nodes for free, nodes in self.free.items())

    @property
    def used(self) -> int:
        """Units in use."""
        whole = sum(self.capacity)
        return sum((whole - sum(free)) * nodes for free, nodes in self.opened)


def pack(capacity: Vector, nodes: int, items: Mapping[Vector, int]) -> Packing:
    """Pack pods, given as counts by usage, on equal nodes, the largest first.

    A pod larger than a node, which a pool that was changed can have, takes a whole one.
    """
    return _packed(capacity, nodes, frozenset(items.items()))


# The pools of a fleet repeat, and from one reconcile to the next nearly all of them are as they were. Both functions
# depend on nothing but their arguments.


@lru_cache(maxsize=KNOWN_MAX)
def _packed(capacity: Vector, nodes: int, items: frozenset[tuple[Vector, int]]) -> Packing:
    opened: dict[Vector, int] = {}
    unopened, over = nodes, 0
    for usage, pods in sorted(items, key=lambda item: _size(capacity, item[0]), reverse=True):
        clamped = tuple(map(min, usage, capacity))
        unopened, left = _place(capacity, opened, unopened, clamped, pods)
        over += left
    return Packing(capacity, tuple(sorted(opened.items())), unopened, over)


@lru_cache(maxsize=KNOWN_MAX)
def _added(packing: Packing, usage: Vector, pods: int) -> Packing | None:
    opened = dict(packing.opened)
    unopened, left = _place(packing.capacity, opened, packing.unopened, usage, pods)
    if left or packing.over:
        return None
    return Packing(packing.capacity, tuple(sorted(opened.items())), unopened)


def packable(capacity: Vector, nodes: int, items: Mapping[Vector, int]) -> bool | None:
    """Whether any packing of the pods exists; None where that could not be settled within `SEARCH_LIMIT` steps."""
    wanted = {usage: pods for usage, pods in items.items() if pods > 0 and any(usage)}
    if any(unit > whole for usage in wanted for unit, whole in zip(usage, capacity, strict=True)):
        return False
    if not pack(capacity, nodes, wanted).over:
        return True
    for at, whole in enumerate(capacity):
        if sum(usage[at] * pods for usage, pods in wanted.items()) > whole * nodes:
            return False
    pods = [
        usage
        for usage, count in sorted(wanted.items(), key=lambda item: _size(capacity, item[0]), reverse=True)
        for _ in range(count)
    ]
    return _Search(capacity, pods).run(nodes)


class _Search:
    """Depth-first search over distinct node states."""

    def __init__(self, capacity: Vector, pods: list[Vector]) -> None:
        self._capacity = capacity
        self._pods = pods
        self._steps = 0
        self._seen: set[tuple[int, tuple[tuple[Vector, int], ...]]] = set()

    def run(self, nodes: int) -> bool | None:
        if len(self._pods) > 400:
            return None
        try:
            return self._fits(0, {self._capacity: nodes})
        except _OutOfSteps:
            return None

    def _fits(self, at: int, free: dict[Vector, int]) -> bool:
        if at == len(self._pods):
            return True
        self._steps += 1
        if self._steps > SEARCH_LIMIT:
            raise _OutOfSteps
        state = (at, tuple(sorted(free.items())))
        if state in self._seen:
            return False
        self._seen.add(state)
        usage = self._pods[at]
        for node in sorted(free, key=lambda vector: _size(self._capacity, vector)):
            if not _times(node, usage):
                continue
            after = dict(free)
            _move(after, node, tuple(a - b for a, b in zip(node, usage, strict=True)), 1)
            if self._fits(at + 1, after):
                return True
        return False


class _OutOfSteps(Exception):  # noqa: N818
    pass


def _place(capacity: Vector, opened: dict[Vector, int], unopened: int, usage: Vector, pods: int) -> tuple[int, int]:
    """Place pods in `opened`; answers empty nodes left and pods left."""
    if not any(usage):
        return unopened, 0
    while pods:
        fitting = [node for node in opened if _times(node, usage)]
        if fitting:
            node = min(fitting, key=lambda vector: (_fullness(capacity, vector), vector))
            available = opened[node]
        elif unopened and _times(capacity, usage):
            node, available = capacity, unopened
        else:
            break
        times = _times(node, usage)
        full, rest = min(available, pods // times), 0
        if full < available:
            rest = min(pods - full * times, times)
        for nodes, each in ((full, times), (1 if rest else 0, rest)):
            if not nodes:
                continue
            after = tuple(a - each * b for a, b in zip(node, usage, strict=True))
            if fitting:
                _move(opened, node, after, nodes)
            else:
                unopened -= nodes
                opened[after] = opened.get(after, 0) + nodes
        pods -= full * times + rest
    return unopened, pods


def _move(free: dict[Vector, int], before: Vector, after: Vector, nodes: int) -> None:
    free[before] -= nodes
    if not free[before]:
        del free[before]
    free[after] = free.get(after, 0) + nodes


def _times(free: Vector, usage: Vector) -> int:
    """How many pods fit on a node; a pod that uses nothing is counted as one."""
    return min((f // u for f, u in zip(free, usage, strict=True) if u), default=1)


def _fullness(capacity: Vector, free: Vector) -> int:
    """Sum of free shares, scaled to whole numbers: smaller is fuller."""
    scale = lcm(*(c for c in capacity if c))
    return sum(f * (scale // c) for f, c in zip(free, capacity, strict=True) if c)


def _size(capacity: Vector, usage: Vector) -> tuple[Fraction, int, Vector]:
    """Order of pods: by their largest share of a node, then by the sum of shares."""
    share = max((Fraction(u, c) for u, c in zip(usage, capacity, strict=True) if c), default=Fraction(0))
    return share, _fullness(capacity, usage), usage
