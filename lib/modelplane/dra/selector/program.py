"""A checked selector as Python closures.

Each part becomes one function of a frame. Straight code is paid for at once, by the number of its parts; a loop pays
for its body again at each turn; what takes time by the size of its values pays by that size. So an evaluation ends
after a bounded number of steps, and the number depends on the selector and the device alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from modelplane.dra.device import Device
from modelplane.dra.selector.errors import CompileError
from modelplane.dra.selector.functions import FUNCTIONS, constant_pattern, sum_from
from modelplane.dra.selector.syntax import (
    AND,
    CONDITIONAL,
    INDEX,
    NOT,
    NOT_EQUALS,
    OPTIONAL_INDEX,
    OPTIONAL_SELECT,
    OR,
    Bind,
    Call,
    Ident,
    ListNode,
    Literal,
    Loop,
    MapNode,
    Node,
    Select,
)
from modelplane.dra.selector.types import DOUBLE, UINT
from modelplane.dra.selector.values import (
    NOTHING,
    EvaluationError,
    Key,
    MapValue,
    Meter,
    Optional,
    Unsigned,
    Value,
    equal,
    key_of,
    no_overload,
)

STEPS_PER_PART = 5
STEPS_PER_LITERAL = 1
STEPS_PER_TURN = 8

_CONVERSIONS = frozenset(("bool", "double", "int", "uint", "string", "dyn"))
_FOLDED = frozenset(("quantity", "semver"))
_PATTERNS = frozenset(("matches", "find", "findAll"))
_ENOUGH = 1 << 40
_EMPTY = MapValue({}, ())


class Frame(Meter):
    """One evaluation: its variables and what is left of its steps."""

    __slots__ = ("device", "slots")

    def __init__(self, device: MapValue, slots: int, left: int) -> None:
        super().__init__(left)
        self.device = device
        self.slots: list[Value] = [None] * slots


Run = Callable[[Frame], Value]


class _Unset:
    """A bound variable that was not used yet."""


_UNSET = _Unset()


class Program:
    """A selector ready to run."""

    __slots__ = ("_run", "_slots", "_steps")

    def __init__(self, root: Node, text: str) -> None:
        """Raises CompileError for a constant that cannot be converted."""
        builder = _Builder(text)
        self._run = builder.build(root)
        self._slots = builder.slots
        self._steps = builder.steps(root)

    def run(self, device: MapValue, limit: int) -> tuple[Value, int]:
        """The value, or the EvaluationError in its place, and the steps taken.

        Raises OutOfSteps after `limit` steps.
        """
        frame = Frame(device, self._slots, limit)
        frame.charge(self._steps)
        try:
            value = self._run(frame)
        except EvaluationError as error:
            value = error.with_traceback(None)
        return value, limit - frame.left


def environment(device: Device) -> MapValue:
    """The variable `device`: attributes and capacity of a domain that has none are an empty map."""
    attributes = {domain: MapValue.of_strings(names) for domain, names in device.attributes_by_domain.items()}
    capacity = {domain: MapValue.of_strings(names) for domain, names in device.capacity_by_domain.items()}
    return MapValue.of_strings(
        {
            "driver": device.driver,
            "attributes": MapValue.of_strings(attributes, _EMPTY),
            "capacity": MapValue.of_strings(capacity, _EMPTY),
        }
    )


class _Builder:
    def __init__(self, text: str) -> None:
        self.slots = 0
        self._text = text
        self._scopes: dict[str, list[Run]] = {}
        self._constants: dict[int, Value] = {}

    def steps(self, node: Node) -> int:
        """What a node costs once, bodies of loops aside."""
        if isinstance(node, Literal):
            return STEPS_PER_LITERAL
        if isinstance(node, Loop):
            return STEPS_PER_PART + self.steps(node.over)
        if isinstance(node, Bind):
            return STEPS_PER_PART + self.steps(node.value) + self.steps(node.body)
        return STEPS_PER_PART + sum(map(self.steps, _children(node)))

    def build(self, node: Node) -> Run:
        if isinstance(node, Literal):
            return self._constant(node, node.value)
        if isinstance(node, Ident):
            scope = self._scopes.get(node.name)
            return scope[-1] if scope else _device
        if isinstance(node, Select):
            return _select(self.build(node.operand), node.field, test=node.test)
        if isinstance(node, Call):
            return self._call(node)
        if isinstance(node, ListNode):
            return self._list(node)
        if isinstance(node, MapNode):
            return _map([(self.build(key), self.build(value)) for key, value in node.entries])
        if isinstance(node, Bind):
            return self._bind(node)
        assert isinstance(node, Loop)  # noqa: S101
        return self._loop(node)

    def _constant(self, node: Node, value: Value) -> Run:
        self._constants[id(node)] = value
        return lambda _frame: value

    def _slot(self) -> int:
        self.slots += 1
        return self.slots - 1

    def _list(self, node: ListNode) -> Run:
        items = [self.build(item) for item in node.items]
        if all(id(item) in self._constants for item in node.items):
            return self._constant(node, tuple(self._constants[id(item)] for item in node.items))
        return lambda frame: tuple([item(frame) for item in items])

    def _call(self, node: Call) -> Run:
        args = [self.build(arg) for arg in ((node.target,) if node.target is not None else ()) + tuple(node.args)]
        function = node.function
        if function == AND:
            return _chain(args, False, "&&")
        if function == OR:
            return _chain(args, True, "||")
        if function in (INDEX, OPTIONAL_INDEX):
            return _index(args[0], args[1], optional=function == OPTIONAL_INDEX)
        if function == OPTIONAL_SELECT:
            return _index(args[0], args[1], optional=True)
        special = _SPECIAL.get(function)
        if special is not None:
            return special(*args)
        compute = FUNCTIONS.get(function) or sum_from(_zero(node))
        if function in _PATTERNS:
            pattern = node.args[0] if node.target is not None else node.args[1]
            if isinstance(pattern, Literal) and isinstance(pattern.value, str):
                compute = constant_pattern(function, pattern.value)
        parts = (node.target, *node.args) if node.target is not None else tuple(node.args)
        if function in _CONVERSIONS | _FOLDED and all(id(part) in self._constants for part in parts):
            return self._fold(node, [self._constants[id(part)] for part in parts])
        if len(args) == 1:
            first = args[0]
            return lambda frame: compute(frame, first(frame))
        if len(args) == 2:
            first, second = args
            return lambda frame: compute(frame, first(frame), second(frame))
        return lambda frame: compute(frame, *[arg(frame) for arg in args])

    def _fold(self, node: Call, values: list[Value]) -> Run:
        """A conversion of a constant: done once. As upstream, one that fails is an error of compiling."""
        try:
            return self._constant(node, FUNCTIONS[node.function](Meter(_ENOUGH), *values))
        except EvaluationError as error:
            if node.function in _CONVERSIONS:
                raise CompileError.at(str(error), self._text, node.position) from None
            return _failing(str(error))

    def _bind(self, node: Bind) -> Run:
        value = self.build(node.value)
        slot = self._slot()
        self._scopes.setdefault(node.name, []).append(_lazy(slot, value))
        body = self.build(node.body)
        self._scopes[node.name].pop()

        def run(frame: Frame) -> Value:
            frame.slots[slot] = _UNSET
            return body(frame)

        return run

    def _loop(self, node: Loop) -> Run:
        over = self.build(node.over)
        slots = [self._slot() for _ in node.variables]
        for name, slot in zip(node.variables, slots, strict=True):
            self._scopes.setdefault(name, []).append(_variable(slot))
        test = self.build(node.test) if node.test is not None else None
        item = self.build(node.item) if node.item is not None else None
        for name in node.variables:
            self._scopes[name].pop()
        steps = STEPS_PER_TURN + sum(self.steps(part) for part in (node.test, node.item) if part is not None)
        turns = _turns(over, slots, steps)
        if node.kind in ("all", "exists"):
            assert test is not None  # noqa: S101
            return _quantifier(turns, test, node.kind == "exists", node.kind)
        if node.kind == "exists_one":
            assert test is not None  # noqa: S101
            return _exists_one(turns, test)
        assert item is not None  # noqa: S101
        if node.kind == "map":
            return _collect_map(turns, slots[0], test, item)
        return _collect_list(turns, test, item)


def _children(node: Node) -> Sequence[Node]:
    if isinstance(node, Select):
        return (node.operand,)
    if isinstance(node, Call):
        return (node.target, *node.args) if node.target is not None else node.args
    if isinstance(node, ListNode):
        return node.items
    return [part for entry in node.entries for part in entry] if isinstance(node, MapNode) else ()


def _zero(node: Call) -> Value:
    if node.type == DOUBLE:
        return 0.0
    return Unsigned(0) if node.type == UINT else 0


def _failing(message: str) -> Run:
    def run(_frame: Frame) -> Value:
        raise EvaluationError(message)

    return run


def _device(frame: Frame) -> Value:
    return frame.device


def _variable(slot: int) -> Run:
    return lambda frame: frame.slots[slot]


def _lazy(slot: int, compute: Run) -> Run:
    def run(frame: Frame) -> Value:
        value = frame.slots[slot]
        if value is _UNSET:
            try:
                value = compute(frame)
            except EvaluationError as error:
                value = error
            frame.slots[slot] = value
        if isinstance(value, EvaluationError):
            raise value
        return value

    return run


def _select(operand: Run, field: str, *, test: bool) -> Run:
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


def _index(operand: Run, key: Run, *, optional: bool) -> Run:
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


def _chain(terms: list[Run], decisive: bool, sign: str) -> Run:
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
        replacement = other(frame)
        if not isinstance(replacement, Optional):
            raise no_overload("or", replacement)
        return replacement

    return run


_SPECIAL: dict[str, Callable[..., Run]] = {
    CONDITIONAL: _conditional,
    NOT: _not,
    NOT_EQUALS: _not_equals,
    "orValue": _or_value,
    "or": _or_optional,
}


def _map(entries: list[tuple[Run, Run]]) -> Run:
    def run(frame: Frame) -> Value:
        found: dict[Key, Value] = {}
        keys: dict[Key, Value] = {}
        for key, value in entries:
            name = key(frame)
            place = key_of(name)
            if place[0] == "other":
                place = ("other", len(found))  # a key that no index finds
            found[place] = value(frame)
            keys[place] = name
        return MapValue(found, tuple(keys.values()))

    return run


Turns = Callable[[Frame], "Callable[[], bool]"]


def _turns(over: Run, slots: list[int], steps: int) -> Turns:
    """Starts a loop; each call of what it returns sets the variables for the next turn, or says that there is none."""
    pair = len(slots) > 1

    def start(frame: Frame) -> Callable[[], bool]:
        base = over(frame)
        if isinstance(base, tuple):
            pairs = enumerate(base)
            elements = iter(base)
        elif isinstance(base, MapValue):
            elements = iter(base.keys)
            pairs = ((key, base.find(key)[0]) for key in base.keys)  # type: ignore[assignment]
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


def _quantifier(turns: Turns, test: Run, decisive: bool, name: str) -> Run:
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


def _exists_one(turns: Turns, test: Run) -> Run:
    def run(frame: Frame) -> Value:
        count = 0
        advance = turns(frame)
        while advance():
            count += _truth(test(frame))
        return count == 1

    return run


def _collect_list(turns: Turns, test: Run | None, item: Run) -> Run:
    def run(frame: Frame) -> Value:
        items: list[Value] = []
        advance = turns(frame)
        while advance():
            if test is None or _truth(test(frame)):
                items.append(item(frame))
        return tuple(items)

    return run


def _collect_map(turns: Turns, key_slot: int, test: Run | None, item: Run) -> Run:
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
