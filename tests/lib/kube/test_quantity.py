"""Quantities against tables of real Kubernetes and against exact fractions."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelplane.kube.quantity import Quantity, QuantityError

NANO = Fraction(1, 10**9)

REFUSED = ["", " 5", "5 ", "1K", "1e", "1E+", "40GB", "0x1", "1.2.3", "1_000", "1Kii", "1iK", "1ee3", "٣", "--1", "1k3"]
REFUSED += ["Ei", "-Pi", ".Ei", "1e99999999999999999999"]

COMPARED = [
    ("40Gi", "81559Mi", -1),
    ("81559Mi", "80Gi", -1),
    ("1.5Gi", "1536Mi", 0),
    ("0.1n", "1n", 0),
    ("-0.1n", "-1n", 0),
    ("8Ei", "9223372036854775807", 0),
    ("9Ei", "8Ei", 0),
    ("Mi", "0", 0),
    ("m", "+", 0),
    (".", "5.", -1),
    (".5", "500m", 0),
    ("1E", "1e18", 0),
    ("1E3", "1k", 0),
    ("00012", "12", 0),
    ("1e400", "999999999999999999999999999999", 1),
    ("-1e400", "-1E", -1),
    ("1e-2000000000", "1n", 0),
    ("1e2000000000", "1e1999999999", 1),
    ("1e4294967296", "1", 0),
]

INTEGERS = [
    ("2", 2),
    ("1Ki", 1024),
    ("81559Mi", 85_520_809_984),
    ("1.5k", 1500),
    ("10.0k", 10_000),
    ("1e3", 1000),
    ("999999999999999999", 999_999_999_999_999_999),
    ("0.0", None),
    ("2.0", None),
    ("2000m", None),
    ("1.5Ki", None),
    ("1Pi", None),
    ("999Ti", None),
    ("10E", None),
    ("9223372036854775807", None),
    ("1e400", None),
]


@pytest.mark.parametrize("text", REFUSED)
def test_refuses(text: str) -> None:
    with pytest.raises(QuantityError):
        Quantity.parse(text)


@pytest.mark.parametrize("left, right, want", COMPARED)
def test_compares(left: str, right: str, want: int) -> None:
    a, b = Quantity.parse(left), Quantity.parse(right)
    assert (a.compare(b), b.compare(a)) == (want, -want)
    assert (a == b, a < b, a > b) == (want == 0, want < 0, want > 0)
    if want == 0:
        assert hash(a) == hash(b)


@pytest.mark.parametrize("text, want", INTEGERS)
def test_integer_follows_the_stored_form(text: str, want: int | None) -> None:
    assert Quantity.parse(text).integer == want


def test_arithmetic() -> None:
    assert Quantity.parse("40Gi").add(Quantity.parse("1Gi")) == Quantity.parse("41Gi")
    assert Quantity.parse("1Ei").add(Quantity.parse("7Ei")).integer is None
    assert Quantity.parse("2").subtract(Quantity.parse("2.0")).integer is None
    assert Quantity.parse("1Gi").add(Quantity(1)).integer == 2**30 + 1
    with pytest.raises(QuantityError, match="too wide"):
        Quantity.parse("1e2000000000").add(Quantity(1))


def test_long_digit_strings_are_read() -> None:
    assert Quantity.parse("9" * 9000) < Quantity.parse("9" * 9001)
    assert Quantity.parse("0." + "0" * 9000 + "1") == Quantity.parse("1n")
    assert Quantity.parse("9" * 9000).approximate == float("inf")


SUFFIXES = {"": 1, "m": Fraction(1, 1000), "k": 1000, "G": 10**9, "E": 10**18, "e-7": Fraction(1, 10**7), "E5": 10**5}
BINARY = {"Ki": 2**10, "Gi": 2**30, "Ei": 2**60}


@st.composite
def quantities(draw: st.DrawFn) -> tuple[str, Fraction]:
    number = draw(st.from_regex(r"[+-]?([0-9]{1,24}|[0-9]{1,12}\.[0-9]{1,14})", fullmatch=True))
    suffix = draw(st.sampled_from([*SUFFIXES, *BINARY]))
    value = Fraction(number.lstrip("+")) * Fraction({**SUFFIXES, **BINARY}[suffix])
    units = -(-abs(value) // NANO) * NANO
    if suffix in BINARY:
        units = min(units, Fraction(2**63 - 1))
    return number + suffix, units if value >= 0 else -units


def exact(quantity: Quantity) -> Fraction:
    return quantity.mantissa * Fraction(10) ** quantity.exponent


@given(quantities(), quantities())
def test_agrees_with_fractions(left: tuple[str, Fraction], right: tuple[str, Fraction]) -> None:
    a, b = Quantity.parse(left[0]), Quantity.parse(right[0])
    assert (exact(a), exact(b)) == (left[1], right[1])
    assert a.compare(b) == (left[1] > right[1]) - (left[1] < right[1])
    assert exact(a.add(b)) == left[1] + right[1]
    assert exact(a.subtract(b)) == left[1] - right[1]
    assert a.integer in (None, left[1])
    assert a.sign == (left[1] > 0) - (left[1] < 0)


@given(st.text(alphabet="0123456789.+-eEinumkKMGTP", max_size=12))
def test_reads_or_refuses(text: str) -> None:
    try:
        quantity = Quantity.parse(text)
    except QuantityError:
        return
    assert isinstance(quantity.approximate, float)
