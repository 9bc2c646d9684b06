"""Run-time values of CEL and how they compare.

int, float, str, bytes, bool, None and tuple stand for themselves. Two quirks of the Go implementation are kept because
they decide verdicts: comparing a Quantity or Semver with another kind is an error, and so is comparing anything with a
quantity that `add` or `sub` computed.

Rules: https://github.com/google/cel-go/tree/v0.26.0/common/types
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from modelplane.kube.quantity import Quantity
from modelplane.kube.semver import Semver

INT_MIN, INT_MAX, UINT_MAX = -(2**63), 2**63 - 1, 2**64 - 1

# A step is about 50 ns. One item costs a few, and so does a run of characters.
STEPS_PER_ITEM = 10
TEXT_PER_STEP = 32

Value = object
Function = Callable[..., Value]
Key = tuple[str, object]


class EvaluationError(Exception):
    """An expression without a value on this device."""


class OutOfSteps(Exception):  # noqa: N818
    """An evaluation that takes more steps than one evaluation may."""


class Meter:
    """Counts down the steps of one evaluation."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left

    def charge(self, steps: int) -> None:
        """Take steps. Raises OutOfSteps when none are left."""
        self.left -= steps
        if self.left < 0:
            raise OutOfSteps


class Unsigned(int):
    """A uint."""

    __slots__ = ()


class Sum(Quantity):
    """A quantity that was computed."""

    __slots__ = ()


class Optional:
    """An optional value; without one `value` is not set."""

    __slots__ = ("present", "value")

    def __init__(self, *value: Value) -> None:
        self.present = bool(value)
        self.value: Value = value[0] if value else None


NOTHING = Optional()


class MapValue:
    """A map. Keys that are numerically equal are one key; `default` answers an index that is not there."""

    __slots__ = ("default", "entries", "keys", "named")

    def __init__(self, entries: Mapping[Key, Value], keys: tuple[Value, ...], default: Value = None) -> None:
        self.named = False
        self.entries = entries
        self.keys = keys
        self.default = default

    @classmethod
    def of_strings(cls, entries: Mapping[str, Value], default: MapValue | None = None) -> MapValue:
        """A map with string keys, in the order of its keys."""
        names = tuple(sorted(entries))
        found = cls({("str", name): entries[name] for name in names}, names, default)
        found.named = True
        return found

    def find(self, key: Value) -> tuple[Value, bool]:
        """The value at a key, and whether there is one. Raises EvaluationError for what cannot be a key."""
        place = key_of(key)
        if place[0] == "other":
            raise no_overload("index", self, key)
        if place in self.entries:
            return self.entries[place], True
        return self.default, self.default is not None

    def __contains__(self, key: Value) -> bool:
        # Go's maps panic on these, unless they are empty or hold strings only by their type.
        if isinstance(key, Semver | bytes) and self.entries and not self.named:
            raise no_overload("in", key, self)
        return key_of(key) in self.entries

    def __len__(self) -> int:
        return len(self.keys)

    def __iter__(self) -> Iterator[Value]:
        return iter(self.keys)


def key_of(key: Value) -> Key:
    """What identifies a map key."""
    if isinstance(key, bool):
        return ("bool", key)
    if isinstance(key, int | float):
        return ("number", key)
    if isinstance(key, str):
        return ("str", key)
    return ("other", None)


def name_of(value: Value) -> str:
    """The name of a value's type, for messages."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, Unsigned):
        return "uint"
    if isinstance(value, Quantity):
        return "quantity"
    names = {int: "int", float: "double", str: "string", bytes: "bytes", tuple: "list", MapValue: "map"}
    return names.get(type(value), type(value).__name__.lower())


def no_overload(what: str, *values: Value) -> EvaluationError:
    """The error of a function that does not take these values."""
    return EvaluationError(f"no such overload: {what}({', '.join(map(name_of, values))})")


def is_number(value: Value) -> bool:
    """Whether the value is an int, uint or double."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def equal(left: Value, right: Value, meter: Meter) -> bool:
    """Left == right. Raises EvaluationError where that has no answer."""
    if left is None or right is None:
        return left is right
    return equal_to(left, right, meter)


def equal_to(left: Value, right: Value, meter: Meter) -> bool:
    """What the left value's own comparison says. Raises EvaluationError where that has no answer."""
    if isinstance(left, bool) or isinstance(right, bool):
        if isinstance(left, Quantity | Semver):
            raise no_overload("==", left, right)
        return left is right
    if is_number(left):
        return is_number(right) and _same_number(left, right)
    if isinstance(left, Quantity):
        if type(right) is not Quantity:
            raise no_overload("==", left, right)
        return left == right
    if isinstance(left, Semver):
        if not isinstance(right, Semver):
            raise no_overload("==", left, right)
        return left == right
    if isinstance(left, tuple):
        if not isinstance(right, tuple) or len(left) != len(right):
            return False
        return not any(_differ(a, b, meter) for a, b in zip(left, right, strict=True))
    if isinstance(left, MapValue):
        return isinstance(right, MapValue) and len(left) == len(right) and _same_entries(left, right, meter)
    if isinstance(left, Optional):
        if not isinstance(right, Optional) or left.present != right.present:
            return False
        return not left.present or equal_to(left.value, right.value, meter)
    if isinstance(left, str | bytes):
        meter.charge(len(left) // TEXT_PER_STEP)
    return type(left) is type(right) and left == right


def _same_number(left: Value, right: Value) -> bool:
    # A double is compared with the double that the whole number rounds to, as upstream does.
    if isinstance(left, float) or isinstance(right, float):
        return float(left) == float(right)  # type: ignore[arg-type]
    return left == right


def _differ(left: Value, right: Value, meter: Meter) -> bool:
    # Inside lists and maps an unanswerable comparison counts as "not different".
    meter.charge(STEPS_PER_ITEM)
    try:
        return not equal(left, right, meter)
    except EvaluationError:
        return False


def _same_entries(left: MapValue, right: MapValue, meter: Meter) -> bool:
    for key in left:
        other, found = right.find(key)
        if not found or _differ(left.find(key)[0], other, meter):
            return False
    return True


def position(items: Iterable[Value], item: Value, meter: Meter) -> int:
    """Where the item first is, or -1; elements that do not compare with it count as different."""
    for index, element in enumerate(items):
        meter.charge(STEPS_PER_ITEM)
        try:
            if equal(element, item, meter) if element is None else equal_to(item, element, meter):
                return index
        except EvaluationError:
            continue
    return -1


def order(left: Value, right: Value, meter: Meter) -> int:
    """-1, 0 or 1. Raises EvaluationError for values that have no order."""
    if is_number(left) and is_number(right):
        if left != left or right != right:
            raise EvaluationError("NaN values cannot be ordered")
        if isinstance(left, float) or isinstance(right, float):
            left, right = float(left), float(right)  # type: ignore[arg-type]
    elif type(left) is not type(right) or not isinstance(left, bool | str | bytes):
        raise no_overload("<", left, right)
    elif isinstance(left, str | bytes):
        meter.charge(len(left) // TEXT_PER_STEP)
    return 0 if left == right else -1 if left < right else 1  # type: ignore[operator]


def size(value: Value) -> int:
    """The characters of a string, bytes of bytes, items of a list, entries of a map. Raises EvaluationError."""
    if isinstance(value, str | bytes | tuple | MapValue):
        return len(value)
    raise no_overload("size", value)
