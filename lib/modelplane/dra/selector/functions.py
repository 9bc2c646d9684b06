"""What the functions of a selector compute. Each takes the meter and its values, the target first.

Types are looked at again because attributes are only known at run time. Raises EvaluationError.
Rules: the libraries named in `declarations`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from itertools import pairwise

from modelplane.dra.selector import regex
from modelplane.dra.selector.values import (
    INT_MAX,
    INT_MIN,
    NOTHING,
    STEPS_PER_ITEM,
    TEXT_PER_STEP,
    UINT_MAX,
    EvaluationError,
    MapValue,
    Meter,
    Optional,
    Sum,
    Unsigned,
    Value,
    equal,
    is_number,
    no_overload,
    order,
    position,
    size,
)
from modelplane.kube.quantity import Quantity, QuantityError
from modelplane.kube.semver import Semver, SemverError

Function = Callable[..., Value]

STEPS_PER_PATTERN_BYTE = 700
STEPS_PER_SEARCH = 150
STEPS_PER_QUANTITY = 40

_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_FLOAT = re.compile(
    r"[+-]?([0-9]+\.?[0-9]*([eE][+-]?[0-9]+)?|\.[0-9]+([eE][+-]?[0-9]+)?|inf|infinity|nan)", re.ASCII | re.IGNORECASE
)
_TRUE = frozenset(("1", "t", "T", "TRUE", "true", "True"))
_FALSE = frozenset(("0", "f", "F", "FALSE", "false", "False"))
_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}


def _text(name: str, *values: Value) -> None:
    if not all(isinstance(value, str) for value in values):
        raise no_overload(name, *values)


def _whole(name: str, *values: Value) -> None:
    if not all(type(value) is int for value in values):
        raise no_overload(name, *values)


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


# Arithmetic


def _arithmetic(sign: str, whole: Callable[[int, int], int], real: Callable[[float, float], float] | None) -> Function:
    def run(_meter: Meter, left: Value, right: Value) -> Value:
        if type(left) is int and type(right) is int:
            return integer(whole(left, right))
        if isinstance(left, Unsigned) and isinstance(right, Unsigned):
            return unsigned(whole(int(left), int(right)))
        if real is not None and isinstance(left, float) and isinstance(right, float):
            return real(left, right)
        raise no_overload(sign, left, right)

    return run


def _divide(left: int, right: int) -> int:
    if right == 0:
        raise EvaluationError("division by zero")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _remainder(left: int, right: int) -> int:
    if right == 0:
        raise EvaluationError("modulus by zero")
    if left == INT_MIN and right == -1:
        raise EvaluationError("integer overflow")
    return (
        int(math.copysign(abs(left) % abs(right), left)) if abs(left) < 2**52 else left - right * _divide(left, right)
    )


def _divide_real(left: float, right: float) -> float:
    if right != 0:
        return left / right
    return math.nan if left == 0 or left != left else math.copysign(math.inf, left) * math.copysign(1.0, right)


_add_numbers = _arithmetic("+", lambda a, b: a + b, lambda a, b: a + b)


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


# Conversions


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
        if not _FLOAT.fullmatch(value):
            raise EvaluationError(f"cannot convert {_short(value)} to double")
        number = float(value)
        if math.isinf(number) and "inf" not in value.lower():
            raise EvaluationError(f"cannot convert {_short(value)} to double")
        return number
    if is_number(value):
        return float(value)  # type: ignore[arg-type]
    raise no_overload("double", value)


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
    if exponent < -4 or exponent >= 21:
        return f"{sign}{digits[0]}{'.' + digits[1:] if digits[1:] else ''}e{exponent:+03d}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    part = digits[exponent + 1 :]
    return f"{sign}{whole}{'.' + part if part else ''}"


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")


# Strings


def _char_at(_meter: Meter, text: Value, index: Value) -> Value:
    if not isinstance(text, str) or type(index) is not int:
        raise no_overload("charAt", text, index)
    if not 0 <= index <= len(text):
        raise EvaluationError(f"index out of range: {index}")
    return text[index : index + 1]


def _index_of(meter: Meter, where: Value, what: Value, start: Value = None) -> Value:
    if isinstance(where, tuple) and start is None:
        return position(where, what, meter)
    if not isinstance(where, str) or not isinstance(what, str) or (start is not None and type(start) is not int):
        raise no_overload("indexOf", where, what)
    meter.charge((len(where) + len(what)) // TEXT_PER_STEP)
    offset = start if isinstance(start, int) else 0
    if not what:
        return offset
    if offset < 0:
        raise EvaluationError(f"index out of range: {offset}")
    return where.find(what, offset)


def _last_index_of(meter: Meter, where: Value, what: Value, end: Value = None) -> Value:
    if isinstance(where, tuple) and end is None:
        found = position(reversed(where), what, meter)
        return len(where) - 1 - found if found >= 0 else -1
    if not isinstance(where, str) or not isinstance(what, str) or (end is not None and type(end) is not int):
        raise no_overload("lastIndexOf", where, what)
    meter.charge((len(where) + len(what)) // TEXT_PER_STEP)
    if end is None:
        return where.rfind(what) if what else len(where)
    assert isinstance(end, int)  # noqa: S101
    if not what:
        return end
    if end < 0:
        raise EvaluationError(f"index out of range: {end}")
    return where.rfind(what, 0, end + len(what)) if end < len(where) else -1


def _replace(meter: Meter, text: Value, old: Value, new: Value, limit: Value = -1) -> Value:
    if not isinstance(text, str) or not isinstance(old, str) or not isinstance(new, str) or type(limit) is not int:
        raise no_overload("replace", text, old, new)
    meter.charge(1 + len(text) // TEXT_PER_STEP)
    count = text.count(old)
    if limit >= 0:
        count = min(count, limit)
    meter.charge((len(text) + count * len(new)) // TEXT_PER_STEP)
    return text.replace(old, new, count)


def _split(meter: Meter, text: Value, separator: Value, limit: Value = -1) -> Value:
    if not isinstance(text, str) or not isinstance(separator, str) or type(limit) is not int:
        raise no_overload("split", text, separator)
    meter.charge(1 + len(text))
    if limit == 0:
        return ()
    if separator:
        return tuple(text.split(separator, limit - 1 if limit > 0 else -1))
    if 0 < limit < len(text):
        return (*text[: limit - 1], text[limit - 1 :])
    return tuple(text)


def _substring(_meter: Meter, text: Value, start: Value, end: Value = None) -> Value:
    if not isinstance(text, str) or type(start) is not int:
        raise no_overload("substring", text, start)
    stop = len(text) if end is None else end
    if type(stop) is not int:
        raise no_overload("substring", text, start, end)
    if start > stop and end is not None:
        raise EvaluationError(f"invalid substring range: {start} to {stop}")
    for bound in (start, stop):
        if not 0 <= bound <= len(text):
            raise EvaluationError(f"index out of range: {bound}")
    return text[start:stop]


def _of_text(name: str, compute: Callable[[str], Value]) -> Function:
    def run(meter: Meter, text: Value) -> Value:
        if not isinstance(text, str):
            raise no_overload(name, text)
        meter.charge(len(text) // TEXT_PER_STEP)
        return compute(text)

    return run


def _of_two_texts(name: str, compute: Callable[[str, str], Value]) -> Function:
    def run(meter: Meter, text: Value, other: Value) -> Value:
        if not isinstance(text, str) or not isinstance(other, str):
            raise no_overload(name, text, other)
        meter.charge((len(text) + len(other)) // TEXT_PER_STEP)
        return compute(text, other)

    return run


def _of_pattern(name: str, compute: Callable[..., Value]) -> Function:
    def run(meter: Meter, text: Value, pattern: Value, *limit: Value) -> Value:
        _text(name, text, pattern)
        _whole(name, *limit)
        assert isinstance(text, str) and isinstance(pattern, str)  # noqa: S101, PT018
        meter.charge(STEPS_PER_SEARCH + STEPS_PER_PATTERN_BYTE * len(pattern))
        try:
            program = int(regex.compiled(pattern).programsize)
            meter.charge((1 + len(text)) * (STEPS_PER_ITEM + program) // 100)
            return compute(text, pattern, *limit)
        except regex.RegexError as error:
            raise EvaluationError(f"invalid regular expression: {error}") from None

    return run


def constant_pattern(name: str, pattern: str) -> Function:
    """matches, find or findAll with a pattern that was compiled when the selector was."""
    program = int(regex.compiled(pattern).programsize)
    computes: dict[str, Function] = {"matches": regex.matches, "find": regex.find, "findAll": regex.find_all}
    compute = computes[name]

    def run(meter: Meter, text: Value, _pattern: Value, *limit: Value) -> Value:
        _text(name, text)
        _whole(name, *limit)
        assert isinstance(text, str)  # noqa: S101
        meter.charge(STEPS_PER_SEARCH + (1 + len(text)) * (STEPS_PER_ITEM + program) // 100)
        return compute(text, pattern, *limit)

    return run


# Lists and sets


def _items(name: str, value: Value) -> tuple[Value, ...]:
    if not isinstance(value, tuple):
        raise no_overload(name, value)
    return value


def _is_sorted(meter: Meter, value: Value) -> Value:
    items = _items("isSorted", value)
    meter.charge(STEPS_PER_ITEM * len(items))
    return all(order(a, b, meter) <= 0 for a, b in pairwise(items))


def _best(name: str, sign: int) -> Function:
    def run(meter: Meter, value: Value) -> Value:
        items = _items(name, value)
        meter.charge(STEPS_PER_ITEM * len(items))
        if not items:
            raise EvaluationError(f"{name} called on empty list")
        best = items[0]
        for item in items[1:]:
            if order(item, best, meter) == sign:
                best = item
        return best

    return run


def sum_from(zero: Value) -> Function:
    """list.sum(), starting at the zero of its static type."""

    def run(meter: Meter, value: Value) -> Value:
        items = _items("sum", value)
        meter.charge(STEPS_PER_ITEM * len(items))
        total = zero
        for item in items:
            total = add(meter, total, item)
        return total

    return run


def is_in(meter: Meter, item: Value, where: Value) -> Value:
    """Item in list, or key in map."""
    if isinstance(where, tuple):
        return position(where, item, meter) >= 0
    if isinstance(where, MapValue):
        return item in where
    raise no_overload("in", item, where)


def _holds_all(meter: Meter, items: tuple[Value, ...], wanted: tuple[Value, ...]) -> bool:
    return all(position(items, item, meter) >= 0 for item in wanted)


def _sets_contains(meter: Meter, left: Value, right: Value) -> Value:
    return _holds_all(meter, _items("sets.contains", left), _items("sets.contains", right))


def _sets_equivalent(meter: Meter, left: Value, right: Value) -> Value:
    a, b = _items("sets.equivalent", left), _items("sets.equivalent", right)
    return _holds_all(meter, a, b) and _holds_all(meter, b, a)


def _sets_intersects(meter: Meter, left: Value, right: Value) -> Value:
    a, b = _items("sets.intersects", left), _items("sets.intersects", right)
    return any(position(b, item, meter) >= 0 for item in a)


# Optionals


def _optional_value(_meter: Meter, value: Value) -> Value:
    if not isinstance(value, Optional):
        raise no_overload("value", value)
    if not value.present:
        raise EvaluationError("optional.none() dereference")
    return value.value


def _has_value(_meter: Meter, value: Value) -> Value:
    if not isinstance(value, Optional):
        raise no_overload("hasValue", value)
    return value.present


def _is_zero(value: Value) -> bool:
    if isinstance(value, Quantity | Semver):
        return False
    return (
        value is None or value is False or value in (0, "", b"", ()) or (isinstance(value, MapValue) and not len(value))
    )


# Quantities and versions


def _quantity(name: str, value: Value) -> Quantity:
    if not isinstance(value, Quantity):
        raise no_overload(name, value)
    return value


def _to_quantity(meter: Meter, text: Value) -> Value:
    if not isinstance(text, str):
        raise no_overload("quantity", text)
    meter.charge(STEPS_PER_QUANTITY + len(text))
    try:
        return Quantity.parse(text)
    except QuantityError as error:
        raise EvaluationError(str(error)[:200]) from None


def _to_semver(meter: Meter, text: Value, normalize: Value = False) -> Value:
    if not isinstance(text, str) or not isinstance(normalize, bool):
        raise no_overload("semver", text)
    meter.charge(STEPS_PER_QUANTITY + len(text))
    try:
        return Semver.parse(text, normalize=normalize)
    except SemverError as error:
        raise EvaluationError(str(error)[:200]) from None


def _readable(read: Function) -> Function:
    def run(meter: Meter, text: Value, *rest: Value) -> Value:
        _text("is", text)
        if not all(isinstance(value, bool) for value in rest):
            raise no_overload("is", *rest)
        try:
            read(meter, text, *rest)
        except EvaluationError:
            return False
        return True

    return run


def compare(meter: Meter, left: Value, right: Value) -> int:
    """left.compareTo(right)."""
    meter.charge(STEPS_PER_QUANTITY)
    if isinstance(left, Quantity) and isinstance(right, Quantity):
        meter.charge((left.mantissa.bit_length() + right.mantissa.bit_length()) // 512)
        return left.compare(right)
    if isinstance(left, Semver) and isinstance(right, Semver):
        return left.compare(right)
    raise no_overload("compareTo", left, right)


def _part(name: str) -> Function:
    def run(_meter: Meter, version: Value) -> Value:
        if not isinstance(version, Semver):
            raise no_overload(name, version)
        number: int = getattr(version, name)
        return number if number <= INT_MAX else number - 2**64

    return run


def _as_integer(_meter: Meter, value: Value) -> Value:
    whole = _quantity("asInteger", value).integer
    if whole is None:
        raise EvaluationError("cannot convert value to integer")
    return whole


def _sum(name: str) -> Function:
    def run(meter: Meter, left: Value, right: Value) -> Value:
        meter.charge(STEPS_PER_QUANTITY)
        own = _quantity(name, left)
        other = Quantity(right) if type(right) is int else _quantity(name, right)
        meter.charge(
            (own.mantissa.bit_length() + other.mantissa.bit_length() + 4 * abs(own.exponent - other.exponent)) // 128
        )
        try:
            total = own.add(other) if name == "add" else own.subtract(other)
        except QuantityError as error:
            raise EvaluationError(str(error)) from None
        return Sum(total.mantissa, total.exponent, total.fixed)

    return run


FUNCTIONS: dict[str, Function] = {
    "_+_": add,
    "_-_": _arithmetic("-", lambda a, b: a - b, lambda a, b: a - b),
    "_*_": _arithmetic("*", lambda a, b: a * b, lambda a, b: a * b),
    "_/_": _arithmetic("/", _divide, _divide_real),
    "_%_": _arithmetic("%", _remainder, None),
    "-_": negate,
    "_<_": lambda meter, a, b: order(a, b, meter) < 0,
    "_<=_": lambda meter, a, b: order(a, b, meter) <= 0,
    "_>_": lambda meter, a, b: order(a, b, meter) > 0,
    "_>=_": lambda meter, a, b: order(a, b, meter) >= 0,
    "_==_": lambda meter, a, b: equal(a, b, meter),
    "@in": is_in,
    "size": lambda _meter, value: size(value),
    "dyn": lambda _meter, value: value,
    "bool": to_bool,
    "double": to_double,
    "int": to_int,
    "uint": to_uint,
    "string": to_string,
    "contains": _of_two_texts("contains", lambda text, part: part in text),
    "endsWith": _of_two_texts("endsWith", lambda text, part: text.endswith(part)),
    "startsWith": _of_two_texts("startsWith", lambda text, part: text.startswith(part)),
    "matches": _of_pattern("matches", regex.matches),
    "find": _of_pattern("find", regex.find),
    "findAll": _of_pattern("findAll", regex.find_all),
    "charAt": _char_at,
    "indexOf": _index_of,
    "lastIndexOf": _last_index_of,
    "lowerAscii": _of_text("lowerAscii", lambda text: text.translate(_LOWER)),
    "upperAscii": _of_text("upperAscii", lambda text: text.translate(_UPPER)),
    "replace": _replace,
    "split": _split,
    "substring": _substring,
    "trim": _of_text("trim", lambda text: text.strip(_SPACE)),
    "isSorted": _is_sorted,
    "max": _best("max", 1),
    "min": _best("min", -1),
    "sets.contains": _sets_contains,
    "sets.equivalent": _sets_equivalent,
    "sets.intersects": _sets_intersects,
    "optional.of": lambda _meter, value: Optional(value),
    "optional.ofNonZeroValue": lambda _meter, value: NOTHING if _is_zero(value) else Optional(value),
    "optional.none": lambda _meter: NOTHING,
    "value": _optional_value,
    "hasValue": _has_value,
    "quantity": _to_quantity,
    "isQuantity": _readable(_to_quantity),
    "semver": _to_semver,
    "isSemver": _readable(_to_semver),
    "isGreaterThan": lambda meter, a, b: compare(meter, a, b) > 0,
    "isLessThan": lambda meter, a, b: compare(meter, a, b) < 0,
    "compareTo": compare,
    "major": _part("major"),
    "minor": _part("minor"),
    "patch": _part("patch"),
    "sign": lambda _meter, value: _quantity("sign", value).sign,
    "asApproximateFloat": lambda _meter, value: _quantity("asApproximateFloat", value).approximate,
    "asInteger": _as_integer,
    "isInteger": lambda _meter, value: _quantity("isInteger", value).integer is not None,
    "add": _sum("add"),
    "sub": _sum("sub"),
}
