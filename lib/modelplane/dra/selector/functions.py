"""What the functions of a selector compute. Each takes the meter and its values, the target first.

Types are looked at again because attributes are only known at run time. Raises EvaluationError.
Rules: the libraries named in `declarations`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from modelplane.dra.selector import regex
from modelplane.dra.selector.arithmetic import (
    add,
    arithmetic,
    divide,
    divide_real,
    negate,
    remainder,
    to_bool,
    to_double,
    to_int,
    to_string,
    to_uint,
)
from modelplane.dra.selector.values import (
    INT_MAX,
    INT_MIN,
    NOTHING,
    STEPS_PER_ITEM,
    TEXT_PER_STEP,
    EvaluationError,
    Function,
    MapValue,
    Meter,
    Optional,
    Sum,
    Value,
    equal,
    no_overload,
    order,
    position,
    size,
)
from modelplane.kube.quantity import Quantity, QuantityError
from modelplane.kube.semver import Semver, SemverError

STEPS_PER_PATTERN_BYTE = 700
STEPS_PER_SEARCH = 150
STEPS_PER_QUANTITY = 40

_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}


def _text(name: str, *values: Value) -> None:
    if not all(isinstance(value, str) for value in values):
        raise no_overload(name, *values)


def _whole(name: str, *values: Value) -> None:
    if not all(type(value) is int for value in values):
        raise no_overload(name, *values)


# Strings


def _char_at(_meter: Meter, text: Value, index: Value) -> Value:
    if not isinstance(text, str) or type(index) is not int:
        raise no_overload("charAt", text, index)
    if not 0 <= index <= len(text):
        raise EvaluationError(f"index out of range: {index}")
    return text[index : index + 1]


def _bound(name: str, where: Value, what: Value, *bound: Value) -> tuple[str, str, int | None]:
    if not isinstance(where, str) or not isinstance(what, str) or not all(type(value) is int for value in bound):
        raise no_overload(name, where, what, *bound)
    return where, what, int(bound[0]) if bound else None  # type: ignore[call-overload]


def _index_of(meter: Meter, where: Value, what: Value, *start: Value) -> Value:
    if isinstance(where, tuple) and not start:
        return position(where, what, meter)
    text, part, offset = _bound("indexOf", where, what, *start)
    meter.charge((len(text) + len(part)) // TEXT_PER_STEP)
    offset = offset or 0
    if not part:
        return offset
    if offset < 0:
        raise EvaluationError(f"index out of range: {offset}")
    return text.find(part, offset)


def _last_index_of(meter: Meter, where: Value, what: Value, *end: Value) -> Value:
    if isinstance(where, tuple) and not end:
        found = position(reversed(where), what, meter)
        return len(where) - 1 - found if found >= 0 else -1
    text, part, offset = _bound("lastIndexOf", where, what, *end)
    meter.charge((len(text) + len(part)) // TEXT_PER_STEP)
    if offset is None:
        return text.rfind(part) if part else len(text)
    if not part:
        return offset
    if offset < 0:
        raise EvaluationError(f"index out of range: {offset}")
    return text.rfind(part, 0, offset + len(part)) if offset < len(text) else -1


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


def _substring(_meter: Meter, text: Value, start: Value, *end: Value) -> Value:
    if not isinstance(text, str) or type(start) is not int or not all(type(value) is int for value in end):
        raise no_overload("substring", text, start, *end)
    stop = int(end[0]) if end else len(text)  # type: ignore[call-overload]
    if end and start > stop:
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


def _comparable(name: str, value: Value) -> None:
    if not isinstance(value, bool | int | float | str | bytes):
        raise no_overload(name, value)


def _order_or_none(left: Value, right: Value, meter: Meter) -> int | None:
    # Upstream takes values without an order as they come.
    try:
        return order(left, right, meter)
    except EvaluationError:
        return None


def _is_sorted(meter: Meter, value: Value) -> Value:
    items = _items("isSorted", value)
    meter.charge(STEPS_PER_ITEM * len(items))
    for item in items:
        _comparable("isSorted", item)
    return not any(_order_or_none(a, b, meter) == 1 for a, b in pairwise(items))


def _best(name: str, sign: int) -> Function:
    def run(meter: Meter, value: Value) -> Value:
        items = _items(name, value)
        meter.charge(STEPS_PER_ITEM * len(items))
        if not items:
            raise EvaluationError(f"{name} called on empty list")
        best = items[0]
        for item in items:
            _comparable(name, item)
            if _order_or_none(item, best, meter) == sign:
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
        # In 64 bits the smallest number is its own negative; where that fits, upstream does not notice.
        wraps = own.fixed and other.fixed and other.mantissa == INT_MIN and own.mantissa >= 0 and own.exponent >= 0
        try:
            total = own.add(other) if name == "add" or wraps else own.subtract(other)
        except QuantityError as error:
            raise EvaluationError(str(error)) from None
        return Sum(total.mantissa, total.exponent, total.fixed)

    return run


FUNCTIONS: dict[str, Function] = {
    "_+_": add,
    "_-_": arithmetic("-", lambda a, b: a - b, lambda a, b: a - b),
    "_*_": arithmetic("*", lambda a, b: a * b, lambda a, b: a * b),
    "_/_": arithmetic("/", divide, divide_real),
    "_%_": arithmetic("%", remainder, None),
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
