"""The parts of a selector as functions of a frame. All raise EvaluationError, loops and calls OutOfSteps."""

from __future__ import annotations

from collections.abc import Callable

from modelplane.dra.selector.functions import is_in
from modelplane.dra.selector.syntax import CONDITIONAL, NOT, NOT_EQUALS
from modelplane.dra.selector.values import (
    NOTHING,
    EvaluationError,
    Key,
    MapValue,
    Meter,
    Optional,
    Value,
    equal,
    key_of,
    name_of,
    no_overload,
)
from modelplane.kube.semver import Semver


class Frame(Meter):
    """One evaluation: its variables and what is left of its steps."""

    __slots__ = ("device", "slots")

    def __init__(self, device: MapValue, slots: int, left: int) -> None:
        super().__init__(left)
        self.device = device
        self.slots: list[Value] = [None] * slots


Run = Callable[[Frame], Value]


class Unset:
    """A bound variable that was not used yet."""


UNSET = Unset()


def failing(message: str) -> Run:
    """Always the same error."""

    def run(_frame: Frame) -> Value:
        raise EvaluationError(message)

    return run


def device_of(frame: Frame) -> Value:
    """The variable `device`."""
    return frame.device


def variable(slot: int) -> Run:
    """The variable of a loop."""
    return lambda frame: frame.slots[slot]


def lazy(slot: int, compute: Run) -> Run:
    """A bound variable, computed at its first use."""

    def run(frame: Frame) -> Value:
        value = frame.slots[slot]
        if value is UNSET:
            try:
                value = compute(frame)
            except EvaluationError as error:
                value = error
            frame.slots[slot] = value
        if isinstance(value, EvaluationError):
            raise value
        return value

    return run


def select(operand: Run, field: str, *, test: bool) -> Run:
    """operand.field, or whether it is there."""
    key: Key = ("str", field)

    def run(frame: Frame) -> Value:
        base = operand(frame)
        if isinstance(base, Optional):
            return _inside(base, field)
        if not isinstance(base, MapValue):
            raise no_overload(f"select .{field}", base)
        value = base.entries.get(key, base.default)
        if value is None and key not in base.entries:
            raise EvaluationError(f"no such key: {field}")
        return value

    def present(frame: Frame) -> Value:
        base = operand(frame)
        if isinstance(base, Optional):
            return _inside(base, field).present
        return isinstance(base, MapValue) and (base.default is not None or key in base.entries)

    return present if test else run


def _inside(base: Optional, key: Value) -> Optional:
    return _look_up(base.value, key) if base.present else NOTHING


def _look_up(base: Value, key: Value) -> Optional:
    """base[?key]."""
    if isinstance(base, MapValue):
        value, found = base.find(key)
        return Optional(value) if found else NOTHING
    if isinstance(base, tuple):
        index = _list_index(key)
        return Optional(base[index]) if 0 <= index < len(base) else NOTHING
    return NOTHING


def _list_index(key: Value) -> int:
    if isinstance(key, int) and not isinstance(key, bool):
        return int(key)
    if isinstance(key, float) and key.is_integer():
        return int(key)
    raise no_overload("index", key)


def index(operand: Run, key: Run, *, optional: bool) -> Run:
    """operand[key] or operand[?key]."""

    def run(frame: Frame) -> Value:
        base, place = operand(frame), key(frame)
        if isinstance(base, Optional):
            return _inside(base, place)
        if isinstance(base, MapValue):
            value, found = base.find(place)
            if not found:
                raise EvaluationError(f"no such key: {place if isinstance(place, str | int) else '?'}")
            return value
        if isinstance(base, tuple):
            index = _list_index(place)
            if not 0 <= index < len(base):
                raise EvaluationError(f"index out of bounds: {index}")
            return base[index]
        raise no_overload("index", base, place)

    def look_up(frame: Frame) -> Value:
        base, place = operand(frame), key(frame)
        return _inside(base, place) if isinstance(base, Optional) else _look_up(base, place)

    return look_up if optional else run


def in_constants(item: Run, where: Value) -> Run:
    """Item in a constant list: upstream looks simple constants up by hash, which versions and bytes do not have."""
    if where == ():
        return lambda _frame: False
    hashed = isinstance(where, tuple) and all(isinstance(value, bool | int | float | str) for value in where)

    def run(frame: Frame) -> Value:
        value = item(frame)
        if hashed and isinstance(value, Semver | bytes):
            raise no_overload("in", value, where)
        return is_in(frame, value, where)

    return run


def chain(terms: list[Run], decisive: bool, sign: str) -> Run:
    """Terms joined by && or ||: the decisive value wins over errors on either side."""

    def run(frame: Frame) -> Value:
        fault: EvaluationError | None = None
        for term in terms:
            try:
                value = term(frame)
            except EvaluationError as error:
                fault = fault or error
                continue
            if value is decisive:
                return decisive
            if not isinstance(value, bool):
                fault = fault or no_overload(sign, value)
        if fault is not None:
            raise fault
        return not decisive

    return run


def _conditional(condition: Run, chosen: Run, other: Run) -> Run:
    def run(frame: Frame) -> Value:
        value = condition(frame)
        if not isinstance(value, bool):
            raise no_overload("?:", value)
        return chosen(frame) if value else other(frame)

    return run


def _not(operand: Run) -> Run:
    def run(frame: Frame) -> Value:
        value = operand(frame)
        if not isinstance(value, bool):
            raise no_overload("!", value)
        return not value

    return run


def _not_equals(left: Run, right: Run) -> Run:
    def run(frame: Frame) -> Value:
        a, b = left(frame), right(frame)
        try:
            return not equal(a, b, frame)
        except EvaluationError:
            return True

    return run


def _or_value(operand: Run, other: Run) -> Run:
    def run(frame: Frame) -> Value:
        value = operand(frame)
        if not isinstance(value, Optional):
            return value
        return value.value if value.present else other(frame)

    return run


def _or_optional(operand: Run, other: Run) -> Run:
    def run(frame: Frame) -> Value:
        value = operand(frame)
        if not isinstance(value, Optional) or value.present:
            return value
        return other(frame)

    return run


SPECIAL: dict[str, Callable[..., Run]] = {
    CONDITIONAL: _conditional,
    NOT: _not,
    NOT_EQUALS: _not_equals,
    "orValue": _or_value,
    "or": _or_optional,
}


def map_of(entries: list[tuple[Run, Run]]) -> Run:
    """A map of computed keys and values."""

    def run(frame: Frame) -> Value:
        found: dict[Key, Value] = {}
        keys: dict[Key, Value] = {}
        for key, value in entries:
            name = key(frame)
            place = key_of(name)
            if isinstance(name, Semver | bytes):
                raise EvaluationError(f"a {name_of(name)} cannot be a key")
            if place[0] == "other":
                place = ("other", len(found))  # a key that no index finds
            found[place] = value(frame)
            keys[place] = name
        return MapValue(found, tuple(keys.values()))

    return run


Turns = Callable[[Frame], "Callable[[], bool]"]


def turns(over: Run, slots: list[int], steps: int) -> Turns:
    """Starts a loop; each call of what it returns sets the variables for the next turn, or says that there is none."""
    pair = len(slots) > 1

    def start(frame: Frame) -> Callable[[], bool]:
        base = over(frame)
        if isinstance(base, tuple):
            pairs = enumerate(base)
            elements = iter(base)
        elif isinstance(base, MapValue):
            elements = iter(base.keys)
            pairs = zip(base.keys, base.entries.values(), strict=True)  # type: ignore[assignment]
        else:
            raise no_overload("iterate", base)
        variables = frame.slots

        def advance() -> bool:
            if pair:
                for variables[slots[0]], variables[slots[1]] in pairs:
                    frame.charge(steps)
                    return True
                return False
            for variables[slots[0]] in elements:
                frame.charge(steps)
                return True
            return False

        return advance

    return start


def quantifier(turns: Turns, test: Run, decisive: bool, name: str) -> Run:
    """all, or exists: the decisive value wins over errors."""

    def run(frame: Frame) -> Value:
        fault: EvaluationError | None = None
        advance = turns(frame)
        while advance():
            try:
                value = test(frame)
            except EvaluationError as error:
                fault = fault or error
                continue
            if value is decisive:
                return decisive
            if not isinstance(value, bool):
                fault = fault or no_overload(name, value)
        if fault is not None:
            raise fault
        return not decisive

    return run


def _truth(value: Value) -> bool:
    if not isinstance(value, bool):
        raise no_overload("?:", value)
    return value


def exists_one(turns: Turns, test: Run) -> Run:
    """Whether the test holds exactly once."""

    def run(frame: Frame) -> Value:
        count = 0
        advance = turns(frame)
        while advance():
            count += _truth(test(frame))
        return count == 1

    return run


def collect_list(turns: Turns, test: Run | None, item: Run) -> Run:
    """The items of the elements that pass the test."""

    def run(frame: Frame) -> Value:
        items: list[Value] = []
        advance = turns(frame)
        while advance():
            if test is None or _truth(test(frame)):
                items.append(item(frame))
        return tuple(items)

    return run


def collect_map(turns: Turns, key_slot: int, test: Run | None, item: Run) -> Run:
    """The items of the elements that pass the test, under the keys of those elements."""

    def run(frame: Frame) -> Value:
        entries: dict[Key, Value] = {}
        keys: list[Value] = []
        advance = turns(frame)
        while advance():
            if test is None or _truth(test(frame)):
                key = frame.slots[key_slot]
                entries[key_of(key)] = item(frame)
                keys.append(key)
        return MapValue(entries, tuple(keys))

    return run
