"""Kubernetes quantities: "81559Mi", "3.35T", "2e3".

A quantity is a whole number times a power of ten, and remembers how Kubernetes stores it: `fixed` is the
64-bit form, anything else is the arbitrary-precision form. Only the 64-bit form converts to an integer, so
"1Pi" and "2000m" are not integers although their values are whole.

Rules: https://github.com/kubernetes/apimachinery/blob/v0.36.2/pkg/api/resource/quantity.go
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import total_ordering

_INT64_MIN = -(2**63)
_INT64_MAX = 2**63 - 1
_NANO = -9
_FIXED_DIGITS = 18
_DIGITS_AT_ONCE = 4000
_WIDEST_SHIFT = 10_000

_SHAPE = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?(?P<suffix>[eE][+-]?[0-9]+|[KMGTPE]i|[numkMGTPE]|)",
    re.ASCII,
)
_DECIMAL = {"": 0, "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}

ACCEPTED = "a Kubernetes quantity such as 80Gi, 500m or 2"


class QuantityError(ValueError):
    """A text that is not a quantity, or a sum too wide to hold."""


@total_ordering
@dataclass(frozen=True, eq=False, slots=True)
class Quantity:
    """`mantissa` x 10^`exponent`; `fixed` says that Kubernetes holds it in 64 bits; `text` is what was read."""

    mantissa: int
    exponent: int = 0
    fixed: bool = True
    text: str = ""

    @classmethod
    def parse(cls, text: str) -> Quantity:
        """Read a quantity as Kubernetes does.

        Values finer than 10^-9 round away from zero; binary suffixes stop at 2^63-1. Raises QuantityError.
        """
        shape = _SHAPE.fullmatch(text)
        if not text or shape is None:
            raise QuantityError(f"{text!r} is not {ACCEPTED}")
        negative = shape["sign"] == "-"
        whole = shape["whole"].lstrip("0")
        part = shape["part"] or ""
        suffix = shape["suffix"]
        digits = len(whole) or 1
        if suffix in _BINARY:
            power = _BINARY[suffix]
            exponent = 0
            factor = 1 << power
            precision = 14 - digits - power * 3 // 10 if not part else -1
        else:
            exponent = _DECIMAL[suffix] if suffix in _DECIMAL else _exponent(suffix, text)
            factor = 1
            precision = _FIXED_DIGITS - digits - len(part)
        scaled = exponent - len(part)
        if precision >= 0 and scaled >= _NANO:
            mantissa = _integer(whole + part) * factor
            if mantissa <= _INT64_MAX:
                return cls(-mantissa if negative else mantissa, scaled, text=text)
        if not shape["whole"] and not part:
            raise QuantityError(f"{text!r} has no digits; give {ACCEPTED}")
        mantissa, exponent = _rounded(_integer(whole + part) * factor, scaled)
        if suffix in _BINARY and _compare(mantissa, exponent, _INT64_MAX, 0) > 0:
            mantissa, exponent = _INT64_MAX, 0
        return cls(-mantissa if negative else mantissa, exponent, fixed=False, text=text)

    @property
    def sign(self) -> int:
        """-1, 0 or 1."""
        return (self.mantissa > 0) - (self.mantissa < 0)

    @property
    def integer(self) -> int | None:
        """The value as an int64, or None where Kubernetes says it is not an integer (isInteger, asInteger)."""
        if not self.fixed or self.exponent < 0:
            return None
        if self.exponent > 19 and self.mantissa:
            return None
        value = self.mantissa * 10 ** min(self.exponent, 19)
        return value if _INT64_MIN <= value <= _INT64_MAX else None

    @property
    def approximate(self) -> float:
        """The value as a float, infinite when out of range (asApproximateFloat)."""
        exponent = self.exponent
        try:
            base = float(self.mantissa)
        except OverflowError:
            base = float("inf") if self.mantissa > 0 else float("-inf")
        if exponent == 0 or base == 0:
            return base
        if exponent > 308:
            return base * float("inf")
        if exponent < -323:
            return base * 0.0
        tens, rest = divmod(abs(exponent), 32)
        if exponent > 0:
            return base * (float(f"1e{32 * tens}") * float(f"1e{rest}"))
        return base * (float(f"1e-{32 * tens}") / float(f"1e{rest}"))

    def compare(self, other: Quantity) -> int:
        """-1, 0 or 1 as this quantity is less than, equal to or greater than the other."""
        return _compare(self.mantissa, self.exponent, other.mantissa, other.exponent)

    def add(self, other: Quantity) -> Quantity:
        """The exact sum. Raises QuantityError when the two are too many powers of ten apart."""
        if self.fixed and other.fixed:
            if other.mantissa == 0:
                return self
            if self.mantissa == 0:
                return other
            summed = _fixed_sum(self, other)
            if summed is not None:
                return summed
        exponent = min(self.exponent, other.exponent)
        if max(self.exponent, other.exponent) - exponent > _WIDEST_SHIFT:
            raise QuantityError("the sum of these quantities is too wide to compute")
        mantissa = self.mantissa * 10 ** (self.exponent - exponent) + other.mantissa * 10 ** (other.exponent - exponent)
        return Quantity(mantissa, exponent, fixed=False)

    def subtract(self, other: Quantity) -> Quantity:
        """The exact difference. Raises QuantityError as `add` does."""
        return self.add(Quantity(-other.mantissa, other.exponent, other.fixed))

    def __eq__(self, other: object) -> bool:
        return self.compare(other) == 0 if isinstance(other, Quantity) else NotImplemented

    def __lt__(self, other: Quantity) -> bool:
        return self.compare(other) < 0

    def __str__(self) -> str:
        return self.text or (f"{self.mantissa}e{self.exponent}" if self.exponent else str(self.mantissa))

    def __hash__(self) -> int:
        if self.mantissa == 0:
            return hash(0)
        mantissa, exponent = self.mantissa, self.exponent
        while mantissa % 10 == 0:
            mantissa, exponent = mantissa // 10, exponent + 1
        return hash((mantissa, exponent))


def _exponent(suffix: str, text: str) -> int:
    digits = suffix[1:].lstrip("+-").lstrip("0")
    value = int(digits[:20] or "0")
    if suffix[1] == "-":
        value = -value
    if not _INT64_MIN <= value <= _INT64_MAX:
        raise QuantityError(f"{text!r} has an exponent out of range")
    return (value + 2**31) % 2**32 - 2**31


def _integer(digits: str) -> int:
    # Python refuses to convert very long digit strings in one go.
    value = 0
    for start in range(0, len(digits), _DIGITS_AT_ONCE):
        chunk = digits[start : start + _DIGITS_AT_ONCE]
        value = value * 10 ** len(chunk) + int(chunk)
    return value


def _rounded(mantissa: int, exponent: int) -> tuple[int, int]:
    """A non-negative value in units of 10^-9, rounded up; in its own unit when that would be a huge number."""
    surplus = _NANO - exponent
    if mantissa == 0 or -surplus > _WIDEST_SHIFT:
        return mantissa, exponent
    if surplus <= 0:
        return mantissa * 10**-surplus, _NANO
    if surplus > mantissa.bit_length():
        return 1, _NANO
    return -(-mantissa // 10**surplus), _NANO


def _compare(left: int, left_exponent: int, right: int, right_exponent: int) -> int:
    if left_exponent != right_exponent and left and right and (left > 0) == (right > 0):
        shift = left_exponent - right_exponent
        # A side that is ahead by more powers of ten than the other has bits is larger without looking closer.
        if shift > right.bit_length():
            return 1 if left > 0 else -1
        if -shift > left.bit_length():
            return -1 if left > 0 else 1
        if shift > 0:
            left *= 10**shift
        else:
            right *= 10**-shift
    return (left > right) - (left < right)


def _fixed_sum(left: Quantity, right: Quantity) -> Quantity | None:
    """The sum if it stays within 64 bits at the finer of the two exponents."""
    exponent = min(left.exponent, right.exponent)
    total = 0
    for term in (left, right):
        shift = term.exponent - exponent
        if shift > _FIXED_DIGITS:
            return None
        value = term.mantissa * 10**shift
        if not _INT64_MIN <= value <= _INT64_MAX:
            return None
        total += value
    return Quantity(total, exponent) if _INT64_MIN <= total <= _INT64_MAX else None
