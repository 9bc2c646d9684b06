"""A checked selector as Python closures.

Each part becomes one function of a frame. Straight code is paid for at once, by the number of its parts; a loop pays
for its body again at each turn; what takes time by the size of its values pays by that size. So an evaluation ends
after a bounded number of steps, and the number depends on the selector and the device alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from modelplane.dra.device import Device
from modelplane.dra.selector import closures
from modelplane.dra.selector.closures import UNSET, Frame, Run
from modelplane.dra.selector.errors import CompileError
from modelplane.dra.selector.functions import FUNCTIONS, constant_pattern, sum_from
from modelplane.dra.selector.syntax import (
    AND,
    IN,
    INDEX,
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
    EvaluationError,
    MapValue,
    Meter,
    Unsigned,
    Value,
)

STEPS_PER_PART = 5
STEPS_PER_LITERAL = 1
STEPS_PER_TURN = 8

_CONVERSIONS = frozenset(("bool", "double", "int", "uint", "string", "dyn"))
_FOLDED = frozenset(("quantity", "semver"))
_PATTERNS = frozenset(("matches", "find", "findAll"))
_ENOUGH = 1 << 40
_EMPTY = MapValue({}, ())


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
        self._late: set[int] = set()  # constants that upstream computes at each evaluation

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
            return scope[-1] if scope else closures.device_of
        if isinstance(node, Select):
            return closures.select(self.build(node.operand), node.field, test=node.test)
        if isinstance(node, Call):
            return self._call(node)
        if isinstance(node, ListNode):
            return self._list(node)
        if isinstance(node, MapNode):
            return closures.map_of([(self.build(key), self.build(value)) for key, value in node.entries])
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
            self._note_late(node, node.items)
            return self._constant(node, tuple(self._constants[id(item)] for item in node.items))
        return lambda frame: tuple([item(frame) for item in items])

    def _call(self, node: Call) -> Run:
        args = [self.build(arg) for arg in ((node.target,) if node.target is not None else ()) + tuple(node.args)]
        function = node.function
        if function == AND:
            return closures.chain(args, False, "&&")
        if function == OR:
            return closures.chain(args, True, "||")
        if function in (INDEX, OPTIONAL_INDEX):
            if self._is_composite(node.args[1]):
                raise CompileError.at("an index is never a list, map, null or bytes", self._text, node.position)
            return closures.index(args[0], args[1], optional=function == OPTIONAL_INDEX)
        if function == OPTIONAL_SELECT:
            return closures.index(args[0], args[1], optional=True)
        special = closures.SPECIAL.get(function)
        if special is not None:
            return special(*args)
        if function == IN and id(node.args[1]) in self._constants:
            return closures.in_constants(args[0], self._constants[id(node.args[1])])
        compute = FUNCTIONS.get(function) or sum_from(_zero(node))
        if function in _PATTERNS:
            pattern = node.args[0] if node.target is not None else node.args[1]
            if isinstance(pattern, Literal) and isinstance(pattern.value, str):
                compute = constant_pattern(function, pattern.value)
        parts = (node.target, *node.args) if node.target is not None else tuple(node.args)
        if function in _CONVERSIONS and self._is_fixed_map(parts[0]) and function != "dyn":
            raise CompileError.at(f"no such overload: {function}(map)", self._text, node.position)
        if function in _CONVERSIONS | _FOLDED and all(id(part) in self._constants for part in parts):
            self._note_late(node, parts)
            return self._fold(node, [self._constants[id(part)] for part in parts])
        if len(args) == 1:
            first = args[0]
            return lambda frame: compute(frame, first(frame))
        if len(args) == 2:
            first, second = args
            return lambda frame: compute(frame, first(frame), second(frame))
        return lambda frame: compute(frame, *[arg(frame) for arg in args])

    def _note_late(self, node: Node, parts: Sequence[Node]) -> None:
        if (isinstance(node, Call) and node.function in _FOLDED) or any(id(part) in self._late for part in parts):
            self._late.add(id(node))

    def _is_composite(self, node: Node) -> bool:
        """Whether a constant is of a kind that indexes nothing; upstream finds that out before it evaluates."""
        if self._is_fixed_map(node):
            return True
        value = self._constants.get(id(node), 0)
        return id(node) not in self._late and (value is None or isinstance(value, tuple | bytes))

    def _is_fixed_map(self, node: Node) -> bool:
        while isinstance(node, Call) and node.function == "dyn":
            node = node.args[0]
        return isinstance(node, MapNode) and all(
            self._is_fixed_map(part) or (id(part) in self._constants and id(part) not in self._late)
            for part in _children(node)
        )

    def _fold(self, node: Call, values: list[Value]) -> Run:
        """A conversion of a constant: done once. As upstream, one that fails is an error of compiling."""
        try:
            return self._constant(node, FUNCTIONS[node.function](Meter(_ENOUGH), *values))
        except EvaluationError as error:
            if id(node) not in self._late:
                raise CompileError.at(str(error), self._text, node.position) from None
            return closures.failing(str(error))

    def _bind(self, node: Bind) -> Run:
        value = self.build(node.value)
        slot = self._slot()
        self._scopes.setdefault(node.name, []).append(closures.lazy(slot, value))
        body = self.build(node.body)
        self._scopes[node.name].pop()

        def run(frame: Frame) -> Value:
            frame.slots[slot] = UNSET
            return body(frame)

        return run

    def _loop(self, node: Loop) -> Run:
        over = self.build(node.over)
        slots = [self._slot() for _ in node.variables]
        for name, slot in zip(node.variables, slots, strict=True):
            self._scopes.setdefault(name, []).append(closures.variable(slot))
        test = self.build(node.test) if node.test is not None else None
        item = self.build(node.item) if node.item is not None else None
        for name in node.variables:
            self._scopes[name].pop()
        steps = STEPS_PER_TURN + sum(self.steps(part) for part in (node.test, node.item) if part is not None)
        turns = closures.turns(over, slots, steps)
        if node.kind in ("all", "exists"):
            assert test is not None  # noqa: S101
            return closures.quantifier(turns, test, node.kind == "exists", node.kind)
        if node.kind == "exists_one":
            assert test is not None  # noqa: S101
            return closures.exists_one(turns, test)
        assert item is not None  # noqa: S101
        if node.kind == "map":
            return closures.collect_map(turns, slots[0], test, item)
        return closures.collect_list(turns, test, item)


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
