"""Semantic versions against semver.org's rules and Kubernetes' limits."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelplane.kube.semver import Semver, SemverError

REFUSED = [
    "",
    "1",
    "1.0",
    "1.0.0-",
    "1.0.0+",
    "01.0.0",
    "1.0.0-01",
    "1.0.0-a..b",
    "V1.0.0",
    "v1.0.0",
    " 1.0.0",
    "1.0.0 ",
]
REFUSED += ["18446744073709551616.0.0", "1.0.0-18446744073709551616", "1.0.0+a+b", "1..0", "1.0.0.0", "1.0.٣"]

ASCENDING = [
    "1.0.0-1",
    "1.0.0-9",
    "1.0.0-10",
    "1.0.0-alpha",
    "1.0.0-alpha.1",
    "1.0.0-alpha.beta",
    "1.0.0-rc.1",
    "1.0.0",
]
ASCENDING += ["1.0.1", "1.10.0", "2.0.0", "18446744073709551615.0.0"]

NORMALIZED = [
    ("v1.0.0", "1.0.0"),
    ("1", "1.0.0"),
    ("1.0", "1.0.0"),
    ("01.001.00", "1.1.0"),
    ("v1.2.3-rc.1", "1.2.3-rc.1"),
]


@pytest.mark.parametrize("text", REFUSED)
def test_refuses(text: str) -> None:
    with pytest.raises(SemverError):
        Semver.parse(text)


def test_orders() -> None:
    versions = [Semver.parse(text) for text in ASCENDING]
    for (i, a), (j, b) in itertools.product(enumerate(versions), repeat=2):
        assert a.compare(b) == (i > j) - (i < j)
        assert (a == b, a < b) == (i == j, i < j)


def test_build_metadata_is_ignored() -> None:
    assert Semver.parse("1.0.0+a") == Semver.parse("1.0.0+01")
    assert hash(Semver.parse("1.0.0+a")) == hash(Semver.parse("1.0.0"))


@pytest.mark.parametrize("text, want", NORMALIZED)
def test_normalizes(text: str, want: str) -> None:
    assert str(Semver.parse(text, normalize=True)) == want


@pytest.mark.parametrize("text", ["1.2-rc1", "V1.0.0", "1..3", "vv1.0.0", "", "1.0+b"])
def test_does_not_normalize(text: str) -> None:
    with pytest.raises(SemverError):
        Semver.parse(text, normalize=True)


numbers = st.integers(0, 2**64 - 1)
words = st.one_of(numbers.map(str), st.from_regex(r"[0-9A-Za-z-]*[A-Za-z-][0-9A-Za-z-]*", fullmatch=True))


@given(numbers, numbers, numbers, st.lists(words, max_size=3))
def test_round_trips(major: int, minor: int, patch: int, pre: list[str]) -> None:
    text = f"{major}.{minor}.{patch}" + ("-" + ".".join(pre) if pre else "")
    assert str(Semver.parse(text)) == text
