"""Packing on equal nodes, against brute force."""

from collections import Counter
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelplane.scheduler import packing
from modelplane.scheduler.packing import pack, packable
from modelplane.scheduler.types import Vector


def _brute(capacity: Vector, nodes: int, pods: list[Vector]) -> bool:
    for choice in product(range(nodes), repeat=len(pods)):
        used = [[0] * len(capacity) for _ in range(nodes)]
        for node, usage in zip(choice, pods, strict=True):
            for at, units in enumerate(usage):
                used[node][at] += units
        if all(u <= c for node in used for u, c in zip(node, capacity, strict=True)):
            return True
    return not pods


@pytest.mark.parametrize(
    "capacity, nodes, pods, fits",
    [
        ((8,), 1, [(1,)] * 8, True),
        ((8,), 1, [(1,)] * 9, False),
        ((8,), 1, [(5,), (5,)], False),
        ((8,), 2, [(1,), (3,), (5,), (5,)], True),
        ((8, 4), 1, [(1, 4), (1, 0)], True),
        ((8, 4), 1, [(1, 4), (1, 1)], False),
        ((10,), 2, [(5,), (4,), (3,), (3,), (3,), (2,)], True),
        ((4,), 1, [(5,)], False),
        ((4,), 0, [(1,)], False),
        ((4,), 0, [], True),
        ((4,), 1, [(0,)] * 9, True),
    ],
)
def test_packable(capacity: Vector, nodes: int, pods: list[Vector], fits: bool) -> None:
    assert packable(capacity, nodes, Counter(pods)) is fits


pods = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), max_size=6)


@settings(max_examples=200, deadline=None)
@given(st.tuples(st.integers(1, 6), st.integers(1, 3)), st.integers(0, 3), pods)
def test_packing_never_claims_what_brute_force_denies(capacity: Vector, nodes: int, items: list[Vector]) -> None:
    possible = _brute(capacity, nodes, [i for i in items if any(i)])
    assert packable(capacity, nodes, Counter(items)) is possible
    clamped = [tuple(map(min, i, capacity)) for i in items]
    if clamped == items and not pack(capacity, nodes, Counter(items)).over:
        assert possible


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 8), st.integers(0, 3), st.lists(st.integers(1, 8), max_size=5), st.integers(1, 8))
def test_room_is_what_add_accepts(capacity: int, nodes: int, items: list[int], new: int) -> None:
    found = pack((capacity,), nodes, Counter((i,) for i in items))
    room = found.room((new,))
    if room:
        assert found.add((new,), room) is not None
    assert found.add((new,), room + 1) is None


def test_one_size_is_exact() -> None:
    for usage in range(1, 9):
        found = pack((8,), 3, {})
        assert found.room((usage,)) == 8 // usage * 3


def test_a_pod_takes_the_fullest_node() -> None:
    found = pack((8,), 3, {(5,): 1, (2,): 1}).add((3,), 1)
    assert found is not None
    assert found.free == {(1,): 1, (5,): 1, (8,): 1}


def test_an_unfinished_search_is_not_a_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    # 3 nodes of 12 for 5,5,5,5,4,4,4,4: the totals allow it, no packing does.
    items = Counter({(5,): 4, (4,): 4})
    assert packable((12,), 3, items) is False
    monkeypatch.setattr(packing, "SEARCH_LIMIT", 2)
    assert packable((12,), 3, items) is None
