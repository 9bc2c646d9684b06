"""Weights: shares keep their ratio exactly, in whole numbers a route accepts."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelplane.routing import weights

SHARES = st.lists(st.tuples(st.integers(0, 1_000_000), st.integers(0, 16)), max_size=16)


@pytest.mark.parametrize(
    "shares, want",
    [
        ([(80, 3), (20, 1)], [[27, 27, 26], [20]]),
        ([(1, 5), (1, 1)], [[1, 1, 1, 1, 1], [5]]),
        ([(1, 3), (1_000_000, 1)], [[1, 1, 1], [1_000_000]]),
        ([(90, 1), (10, 1)], [[9], [1]]),
        ([(1, 4)], [[1, 1, 1, 1]]),
        ([(7, 1)], [[1]]),
        ([(0, 2), (5, 1)], [[0, 0], [1]]),
        ([(0, 2)], [[0, 0]]),
        ([(5, 0), (3, 1)], [[], [1]]),
        ([], []),
    ],
)
def test_divided(shares, want):
    assert weights.divide(shares) == want


@given(SHARES)
def test_whole_bounded_and_fair(shares):
    divided = weights.divide(shares)
    assert [len(part) for part in divided] == [count for _, count in shares]
    for (weight, _), part in zip(shares, divided, strict=True):
        assert all(0 <= w <= weights.MAX for w in part)
        assert all((w > 0) == (weight > 0) for w in part)
        assert not part or max(part) - min(part) <= 1


@given(st.lists(st.tuples(st.integers(1, 1000), st.integers(1, 16)), min_size=2, max_size=16))
def test_sums_keep_the_ratio_exactly(shares):
    divided = weights.divide(shares)
    first = Fraction(sum(divided[0]), shares[0][0])
    assert all(Fraction(sum(part), weight) == first for (weight, _), part in zip(shares, divided, strict=True))
    assert math.gcd(*(w for part in divided for w in part)) == 1


@given(st.lists(st.tuples(st.integers(1, 1_000_000), st.integers(1, 16)), min_size=1, max_size=16))
def test_deterministic_and_scale_free(shares):
    assert weights.divide(shares) == weights.divide(list(shares))


@pytest.mark.parametrize(
    "levels, want",
    [
        ([], None),
        ([(1, 5), (0, 5)], 0),
        ([(1, 5), (0, 0)], 1),
        ([(1, 0), (0, 0)], 0),
        ([(7, 1)], 7),
    ],
)
def test_active_priority(levels, want):
    assert weights.active_priority(levels) == want
