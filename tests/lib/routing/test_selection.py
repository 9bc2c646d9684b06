"""Sixteen of many: spread over clusters and selectors, the same for any order, steady when one more appears."""

import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from modelplane.routing.selection import Candidate, spread

SALT = ("ml", "qwen")


def fleet(clusters, per_cluster, entry=0, weight=1):
    return [
        Candidate(f"e{entry}-{c}-{i}", entry, weight, f"cluster-{c}")
        for c in range(clusters)
        for i in range(per_cluster)
    ]


def test_all_where_they_fit():
    candidates = fleet(4, 4)
    assert spread(candidates, SALT) == candidates


def test_even_over_clusters():
    taken = Counter(c.domain for c in spread(fleet(5, 20), SALT))
    assert sorted(taken.values()) == [3, 3, 3, 3, 4]
    assert len(spread(fleet(100, 1), SALT)) == 16


def test_slots_follow_weight_and_none_is_left_out():
    candidates = [*fleet(3, 20, 0, 90), *fleet(3, 20, 1, 10), *fleet(3, 20, 2, 0)]
    taken = Counter(c.entry for c in spread(candidates, SALT))
    assert taken[1] >= 1
    assert taken[2] == 1
    assert taken[0] >= 12


def test_services_leave_out_different_clusters():
    picked = {tuple(sorted(c.domain for c in spread(fleet(40, 1), ("ml", str(i))))) for i in range(10)}
    assert len(picked) == 10


@given(st.integers(17, 60), st.integers(1, 6), st.randoms(use_true_random=False))
def test_order_of_the_input_does_not_matter(clusters, per_cluster, rng: random.Random):
    candidates = fleet(clusters, per_cluster)
    shuffled = list(candidates)
    rng.shuffle(shuffled)
    assert {c.name for c in spread(candidates, SALT)} == {c.name for c in spread(shuffled, SALT)}


def test_one_more_moves_at_most_one():
    before = {c.name for c in spread(fleet(30, 1), SALT)}
    after = {c.name for c in spread(fleet(31, 1), SALT)}
    assert len(before - after) <= 1
