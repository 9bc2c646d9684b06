"""Arithmetic and conversions of CEL numbers. All raise EvaluationError."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal

from modelplane.dra.selector.values import (
    INT_MAX,
    INT_MIN,
    TEXT_PER_STEP,
    UINT_MAX,
    EvaluationError,
    Function,
    Meter,
    Unsigned,
    Value,
    is_number,
    no_overload,
    size,
)

_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_DIGITS = "[0-9]+(?:_[0-9]+)*"
_HEX = "[0-9a-f]+(?:_[0-9a-f]+)*"
_FLOAT = re.compile(
    rf"[+-]?(?:(?:{_DIGITS}\.?(?:{_DIGITS})?|\.{_DIGITS})(?:e[+-]?{_DIGITS})?"
    rf"|(?P<hex>0x_?(?:{_HEX}\.?(?:{_HEX})?|\.{_HEX})p[+-]?{_DIGITS})|inf|infinity)|nan",
    re.ASCII | re.IGNORECASE,
)
_TRUE = frozenset(("1", "t", "T", "TRUE", "true", "True"))
_FALSE = frozenset(("0", "f", "F", "FALSE", "false", "False"))


def integer(value: int) -> int:
    """The value as an int. Raises EvaluationError if it does not fit."""
    if not INT_MIN <= value <= INT_MAX:
        raise EvaluationError("integer overflow")
    return value


def unsigned(value: int) -> Unsigned:
    """The value as a uint. Raises EvaluationError if it does not fit."""
    if not 0 <= value <= UINT_MAX:
        raise EvaluationError("unsigned integer overflow")
    return Unsigned(value)


def arithmetic(sign: str, whole: Callable[[int, int], int], real: Callable[[float, float], float] | None) -> Function:
    """An operator on two numbers of one type."""

    def run(_meter: Meter, left: Value, right: Value) -> Value:
        if type(left) is int and type(right) is int:
            return integer(whole(left, right))
        if isinstance(left, Unsigned) and isinstance(right, Unsigned):
            return unsigned(whole(int(left), int(right)))
        if real is not None and isinstance(left, float) and isinstance(right, float):
            return real(left, right)
        raise no_overload(sign, left, right)

    return run


def divide(left: int, right: int) -> int:
    """Left / right, towards zero."""
    if right == 0:
        raise EvaluationError("division by zero")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def remainder(left: int, right: int) -> int:
    """Left % right, with the sign of the left."""
    if right == 0:
        raise EvaluationError("modulus by zero")
    if left == INT_MIN and right == -1:
        raise EvaluationError("integer overflow")
    return int(math.copysign(abs(left) % abs(right), left)) if abs(left) < 2**52 else left - right * divide(left, right)


def divide_real(left: float, right: float) -> float:
    """Left / right; infinite or NaN by zero."""
    if right != 0:
        return left / right
    return math.nan if left == 0 or left != left else math.copysign(math.inf, left) * math.copysign(1.0, right)


_add_numbers = arithmetic("+", lambda a, b: a + b, lambda a, b: a + b)


def add(meter: Meter, left: Value, right: Value) -> Value:
    """Left + right."""
    if isinstance(left, str | bytes) and type(left) is type(right):
        meter.charge((len(left) + size(right)) // TEXT_PER_STEP)
        return left + right  # type: ignore[operator]
    if isinstance(left, tuple) and isinstance(right, tuple):
        meter.charge(len(left) + len(right))
        return left + right
    return _add_numbers(meter, left, right)


def negate(_meter: Meter, value: Value) -> Value:
    """-value."""
    if type(value) is int:
        return integer(-value)
    if isinstance(value, float):
        return -value
    raise no_overload("-", value)


def to_int(_meter: Meter, value: Value) -> Value:
    """int(value)."""
    if isinstance(value, str):
        if not _INTEGER.fullmatch(value):
            raise EvaluationError(f"cannot convert {_short(value)} to int")
        digits = value.lstrip("+-").lstrip("0") or "0"
        if len(digits) > 20:
            raise EvaluationError("integer overflow")
        return integer(-int(digits) if value[0] == "-" else int(digits))
    if isinstance(value, float):
        if value != value or not INT_MIN < value < INT_MAX:
            raise EvaluationError("integer overflow")
        return int(value)
    if is_number(value):
        return integer(int(value))  # type: ignore[call-overload]
    raise no_overload("int", value)


def to_uint(_meter: Meter, value: Value) -> Value:
    """uint(value)."""
    if isinstance(value, str):
        if not _INTEGER.fullmatch(value) or value[0] in "+-":
            raise EvaluationError(f"cannot convert {_short(value)} to uint")
        digits = value.lstrip("0") or "0"
        return unsigned(int(digits) if len(digits) <= 20 else UINT_MAX + 1)
    if isinstance(value, float):
        if value != value or not 0 <= value < 2.0**64:
            raise EvaluationError("unsigned integer overflow")
        return Unsigned(value)
    if is_number(value):
        return unsigned(int(value))  # type: ignore[call-overload]
    raise no_overload("uint", value)


def to_double(_meter: Meter, value: Value) -> Value:
    """double(value)."""
    if isinstance(value, str):
        found = _FLOAT.fullmatch(value)
        if not found:
            raise EvaluationError(f"cannot convert {_short(value)} to double")
        number = _real(value.replace("_", ""), hexadecimal=found["hex"] is not None)
        if math.isinf(number) and "inf" not in value.lower():
            raise EvaluationError(f"cannot convert {_short(value)} to double")
        return number
    if is_number(value):
        return float(value)  # type: ignore[arg-type]
    raise no_overload("double", value)


def _real(text: str, *, hexadecimal: bool) -> float:
    try:
        return float.fromhex(text) if hexadecimal else float(text)
    except OverflowError:
        return math.inf


def to_bool(_meter: Meter, value: Value) -> Value:
    """bool(value)."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        if value in _TRUE or value in _FALSE:
            return value in _TRUE
        raise EvaluationError(f"cannot convert {_short(value)} to bool")
    raise no_overload("bool", value)


def to_string(meter: Meter, value: Value) -> Value:
    """string(value)."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        meter.charge(len(value) // TEXT_PER_STEP)
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise EvaluationError("the bytes are not UTF-8") from None
    if isinstance(value, float):
        return _float_text(value)
    if is_number(value):
        return str(int(value))  # type: ignore[call-overload]
    raise no_overload("string", value)


def _float_text(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value != value:
        return "NaN"
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    _, digit_list, point = Decimal(repr(abs(value))).normalize().as_tuple()
    digits = "".join(map(str, digit_list))
    exponent = len(digits) - 1 + int(point) if value else 0
    if exponent < -4 or exponent >= 6:
        return f"{sign}{digits[0]}{'.' + digits[1:] if digits[1:] else ''}e{exponent:+03d}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    part = digits[exponent + 1 :]
    return f"{sign}{whole}{'.' + part if part else ''}"


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")
