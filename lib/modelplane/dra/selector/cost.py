"""The static worst case of a selector, in the units of the API server, which refuses more than 1,000,000.

Rules: https://github.com/google/cel-go/blob/v0.26.0/checker/cost.go,
https://github.com/kubernetes/apiserver/blob/v0.36.2/pkg/cel/library/cost.go and the size estimator of
https://github.com/kubernetes/dynamic-resource-allocation/blob/v0.36.2/cel/compile.go
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from modelplane.dra.selector.syntax import (
    ACCUMULATOR,
    CONDITIONAL,
    EQUALS,
    NOT_EQUALS,
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
from modelplane.dra.selector.types import BYTES, QUANTITY, SEMVER, STRING, Type

LIMIT = 1_000_000
UNBOUNDED = 2**64 - 1

_LIST_COST, _MAP_COST = 10, 30
_CHARACTER = 0.1
_REGEX_CHARACTER = 0.25
_MAX_ENTRIES, _MAX_DOMAIN, _MAX_NAME, _MAX_TEXT, _MAX_DRIVER = 32, 63, 32, 64, 63

_SCALARS = frozenset(("bool", "double", "int", "uint"))
_ONE = frozenset(
    (
        *("sign", "asInteger", "isInteger", "asApproximateFloat", "isGreaterThan", "isLessThan", "compareTo"),
        *("add", "sub", "major", "minor", "patch"),
    )
)
_TRAVERSALS = frozenset(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"))


class Path:
    """Where a value comes from, from `device` on.

    Extending one twice overwrites the first extension where there was room, as upstream's slices do; that decides what
    the keys of a loop with two variables count as.
    """

    __slots__ = ("_room", "_used")

    def __init__(self, room: list[str], used: int) -> None:
        self._room = room
        self._used = used

    def extend(self, step: str) -> Path:
        """The path one step further."""
        if self._used < len(self._room):
            self._room[self._used] = step
            return Path(self._room, self._used + 1)
        spare = max(0, self._used - 1)
        return Path([*self._room, step, *([""] * spare)], self._used + 1)

    @property
    def steps(self) -> tuple[str, ...]:
        """What it leads through, as of now."""
        return tuple(self._room[: self._used])


_NOWHERE = Path([], 0)


@dataclass(frozen=True, slots=True)
class Size:
    """How many characters, items or entries a value has, at least and at most."""

    least: int = 0
    most: int = UNBOUNDED

    def union(self, other: Size) -> Size:
        """The range of either."""
        return Size(min(self.least, other.least), max(self.most, other.most))

    def plus(self, other: Size) -> Size:
        """The sum."""
        return Size(_capped(self.least + other.least), _capped(self.most + other.most))

    def times(self, other: Size) -> Size:
        """The product."""
        return Size(_capped(self.least * other.least), _capped(self.most * other.most))


@dataclass(frozen=True, slots=True)
class Entry:
    """The sizes of a container's keys and values."""

    key: Size
    value: Size

    def union(self, other: Entry | None) -> Entry | None:
        """The sizes of either, unknown if one is."""
        return Entry(self.key.union(other.key), self.value.union(other.value)) if other is not None else None


@dataclass(frozen=True, slots=True)
class _Local:
    path: Path = _NOWHERE
    size: Size | None = None
    entry: Entry | None = None


def estimate(root: Node) -> int:
    """The worst-case cost of a checked selector; UNBOUNDED if it has no bound."""
    return _Estimator().cost(root)


def _capped(value: int) -> int:
    return min(value, UNBOUNDED)


def _scaled(count: int, factor: float) -> int:
    return _capped(math.ceil(count * factor))


class _Estimator:
    def __init__(self) -> None:
        self._paths: dict[int, Path] = {}
        self._sizes: dict[int, Size] = {}
        self._entries: dict[int, Entry] = {}
        self._locals: dict[str, list[_Local]] = {}

    def cost(self, node: Node) -> int:
        if isinstance(node, Literal):
            return 0
        if isinstance(node, Ident):
            local = self._local(node.name)
            self._paths[id(node)] = local.path if local else Path([node.name], 1)
            return 1
        if isinstance(node, Select):
            return self._select(node)
        if isinstance(node, Call):
            return self._call(node)
        if isinstance(node, ListNode):
            return self._list(node)
        if isinstance(node, MapNode):
            return self._map(node)
        if isinstance(node, Bind):
            return self._bind(node)
        assert isinstance(node, Loop)  # noqa: S101
        return self._loop(node)

    def _local(self, name: str) -> _Local | None:
        stack = self._locals.get(name)
        return stack[-1] if stack else None

    def _push(self, name: str, local: _Local) -> None:
        self._locals.setdefault(name, []).append(local)

    def _select(self, node: Select) -> int:
        total = self.cost(node.operand)
        if node.test:
            return total
        self._paths[id(node)] = self._path(node.operand).extend(node.field)
        return _capped(total + (node.operand.type.kind in ("map", "struct")))

    def _list(self, node: ListNode) -> int:
        total, size = _LIST_COST, Size(UNBOUNDED, 0) if node.items else Size(0, 0)
        for item in node.items:
            total += self.cost(item)
            size = size.union(self._size_or_unknown(item))
        self._entries[id(node)] = Entry(Size(1, 1), size)
        return _capped(total)

    def _map(self, node: MapNode) -> int:
        total = _MAP_COST
        keys = values = Size(UNBOUNDED, 0) if node.entries else Size(0, 0)
        for key, value in node.entries:
            total += self.cost(key) + self.cost(value)
            keys = keys.union(self._size_or_unknown(key))
            values = values.union(self._size_or_unknown(value))
        self._entries[id(node)] = Entry(keys, values)
        return _capped(total)

    def _bind(self, node: Bind) -> int:
        total = _LIST_COST + self.cost(node.value)
        self._push(node.name, _Local(self._path(node.value), self._size(node.value), self._entry(node.value)))
        total += self.cost(node.body)
        self._copy(node, node.body)
        self._locals[node.name].pop()
        return _capped(total)

    def _copy(self, node: Node, source: Node) -> None:
        size, entry = self._size(source), self._entry(source)
        if size is not None:
            self._sizes[id(node)] = size
        if entry is not None:
            self._entries[id(node)] = entry

    def _loop(self, node: Loop) -> int:
        total = self.cost(node.over) + self.cost(node.initial)
        self._push(ACCUMULATOR, _Local(_NOWHERE, self._size(node.initial), self._entry(node.initial)))
        entry, path = self._entry(node.over), self._path(node.over)
        is_list = node.over.type.kind == "list"
        if len(node.variables) > 1 or not is_list:
            step = "@indices" if is_list else "@keys"
            self._push(node.variables[0], _Local(path.extend(step), entry.key if entry else None))
        if len(node.variables) > 1 or is_list:
            step = "@items" if is_list else "@values"
            self._push(node.variables[-1], _Local(path.extend(step), entry.value if entry else None))
        each = self.cost(node.condition) + self.cost(node.step)
        for name in node.variables:
            self._locals[name].pop()
        total += self.cost(node.result)
        self._locals[ACCUMULATOR].pop()
        count = self._size_or_unknown(node.over)
        if isinstance(node.initial, Literal):
            size = self._size(node.initial)
            if size is not None:
                self._sizes[id(node)] = size
        else:
            self._sizes[id(node)] = count
            stepped = self._entry(node.step)
            if stepped is not None:
                self._entries[id(node)] = stepped
        return _capped(total + count.most * each)

    def _call(self, node: Call) -> int:
        if node.function == "dyn":
            total = 1 + self.cost(node.args[0])
            self._copy(node, node.args[0])
            return _capped(total)
        costs = []
        for arg in node.args:
            costs.append(self.cost(arg))
            self._size(arg)  # keeps the size by the path as it is now
        total = self.cost(node.target) if node.target is not None else 0
        worst = 0
        result: Size | None = None
        for overload in node.overloads:
            cost, size = self._overload(node, overload, costs)
            worst = max(worst, cost)
            if size is not None:
                result = size if result is None else result.union(size)
            if overload in ("index_list", "index_map"):
                entry = self._entry(node.args[0])
                result = entry.value if entry else None
                self._paths[id(node)] = self._path(node.args[0]).extend(
                    "@items" if overload == "index_list" else "@values"
                )
            if result is None:
                result = self._size(node)
        if result is not None:
            self._sizes[id(node)] = result
        return _capped(total + worst)

    def _overload(self, node: Call, overload: str, costs: list[int]) -> tuple[int, Size | None]:
        if node.function == CONDITIONAL:
            chosen, other = node.args[1], node.args[2]
            entry = self._entry(chosen)
            entry = entry.union(self._entry(other)) if entry else None
            if entry is not None:
                self._entries[id(node)] = entry
            either = self._size_or_unknown(chosen).union(self._size_or_unknown(other))
            return _capped(costs[0] + max(costs[1], costs[2])), either
        own, size = self._own(node, overload)
        return _capped(own + sum(costs)), size

    def _own(self, node: Call, overload: str) -> tuple[int, Size | None]:
        """The cost of a call without its arguments, and the size of its result where that is known."""
        function, args, target = node.function, node.args, node.target
        if overload == "logical":
            return 0, None
        if function in _ONE:
            return 1, None
        if function in ("quantity", "isQuantity", "semver", "isSemver"):
            return self._characters(args[0]), None
        if target is not None and function in _TRAVERSALS:
            return self._traversal(target), None
        if target is not None:
            found = self._text(node, target)
            if found is not None:
                return found
        if function.startswith("sets."):
            pairs = self._size_or_unknown(args[0]).times(self._size_or_unknown(args[1])).most
            return _capped(pairs * (2 if function == "sets.equivalent" else 1) + 1), None
        if overload == "in_list":
            return self._size_or_unknown(args[1]).most, None
        if overload in ("add_string", "add_bytes", "add_list"):
            size = self._size_or_unknown(args[0]).plus(self._size_or_unknown(args[1]))
            entry = self._entry(args[0])
            entry = entry.union(self._entry(args[1])) if entry else None
            if entry is not None:
                self._entries[id(node)] = entry
            return (1 if overload == "add_list" else _scaled(size.most, _CHARACTER)), size
        if function == EQUALS and args[0].type == args[1].type and args[0].type in (QUANTITY, SEMVER):
            return 1, None
        if function in (EQUALS, NOT_EQUALS) or overload == "order_text":
            shorter = min(self._size_or_unknown(args[0]).most, self._size_or_unknown(args[1]).most)
            return _scaled(shorter, _CHARACTER), None
        if overload == "bytes_to_string":
            size = self._size_or_unknown(args[0])
            return _scaled(size.most, _CHARACTER), Size(size.least // 4, size.most)
        return 1, None

    def _characters(self, node: Node, factor: float = _CHARACTER) -> int:
        return _scaled(self._size_or_unknown(node).most, factor)

    def _traversal(self, target: Node) -> int:
        size = self._size_or_unknown(target)
        if not target.type.params:
            return _scaled(size.most, _CHARACTER)
        each = 1
        if target.type.params[0] in (STRING, BYTES):
            path = self._path(target).steps
            item = _declared_size((*path, "@items")) if path else None
            each += _scaled((item or Size()).most, _CHARACTER)
        return _capped(size.most * each)

    def _text(self, node: Call, target: Node) -> tuple[int, Size | None] | None:
        function, args = node.function, node.args
        size = self._size_or_unknown(target)
        if function in ("lowerAscii", "upperAscii", "substring", "trim"):
            return _scaled(size.most, _CHARACTER), size
        if function == "replace":
            return _scaled(size.most, 2 * _CHARACTER), self._replaced(size, args[0], args[1])
        if function == "split":
            most = size.most
            limit = args[1] if len(args) > 1 else None
            if isinstance(limit, Literal) and isinstance(limit.value, int):
                most = limit.value % 2**64
            return _scaled(size.most, 2 * _CHARACTER), Size(0, most)
        if function in ("find", "findAll", "matches"):
            text = _scaled(size.plus(Size(1, 1)).most, _CHARACTER)
            pattern = self._characters(args[0], _REGEX_CHARACTER)
            return _capped(text * pattern), (Size(0, size.most) if function != "matches" else None)
        if function == "contains":
            return _capped(_scaled(size.most, _CHARACTER) * self._characters(args[0])), None
        if function in ("startsWith", "endsWith"):
            return self._characters(args[0]), None
        return None

    def _replaced(self, size: Size, old: Node, new: Node) -> Size:
        olds, news = self._size_or_unknown(old), self._size_or_unknown(new)
        most = least = kept_most = kept_least = 0
        if olds.least == 0:
            most, kept_most = _capped(size.most + 1), size.most
        elif news.most <= olds.least:
            kept_most = size.most
        else:
            most = _capped(math.ceil(size.most / olds.least))
        if olds.most == 0:
            least, kept_least = _capped(size.least + 1), size.least
        elif olds.most <= news.least:
            kept_least = size.least
        else:
            least = math.ceil(size.least / olds.most)
        return Size(least, most).times(news).plus(Size(kept_least, kept_most))

    def _path(self, node: Node) -> Path:
        if isinstance(node, Ident):
            local = self._local(node.name)
            if local is not None:
                return local.path
        return self._paths.get(id(node), _NOWHERE)

    def _entry(self, node: Node) -> Entry | None:
        found = self._entries.get(id(node))
        if found is None and isinstance(node, Ident):
            local = self._local(node.name)
            return local.entry if local else None
        return found

    def _size_or_unknown(self, node: Node) -> Size:
        return self._size(node) or Size()

    def _size(self, node: Node) -> Size | None:
        found = self._sizes.get(id(node))
        if found is not None:
            return found
        exact = _literal_size(node)
        if exact is not None:
            return Size(exact, exact)
        declared = _declared_size(self._path(node).steps)
        if declared is not None:
            self._sizes[id(node)] = declared
            return declared
        if _is_scalar(node.type):
            return Size(1, 1)
        if isinstance(node, Ident):
            local = self._local(node.name)
            return local.size if local else None
        return None


def _is_scalar(kind: Type) -> bool:
    return kind.kind in _SCALARS or (kind.kind == "optional" and _is_scalar(kind.params[0]))


def _literal_size(node: Node) -> int | None:
    if isinstance(node, Literal):
        return len(node.value) if isinstance(node.value, str | bytes) else 1
    if isinstance(node, ListNode):
        return len(node.items)
    return len(node.entries) if isinstance(node, MapNode) else None


def _declared_size(path: tuple[str, ...]) -> Size | None:
    """The declared size of what a path from `device` leads to."""
    if not path or path[0] != "device":
        return None
    level = "device"
    for step in path[1:]:
        following = _STEPS.get((level, step)) or _STEPS.get((level, "*"))
        if following is None:
            return None
        level = following
    most = _LIMITS.get(level)
    return Size(0, most) if most is not None else None


_STEPS = {
    ("device", "driver"): "driver",
    ("device", "attributes"): "attributes",
    ("device", "capacity"): "capacities",
    ("attributes", "@keys"): "domain",
    ("attributes", "@values"): "attributes of a domain",
    ("attributes", "@items"): "attributes of a domain",
    ("attributes of a domain", "@keys"): "name",
    ("attributes of a domain", "@values"): "attribute",
    ("attributes of a domain", "@items"): "attribute",
    ("attributes of a domain", "*"): "attribute",
    ("capacities", "@keys"): "domain",
    ("capacities", "@values"): "capacities of a domain",
    ("capacities", "@items"): "capacities of a domain",
    ("capacities of a domain", "@keys"): "name",
    ("capacities of a domain", "@values"): "quantity",
    ("capacities of a domain", "@items"): "quantity",
}
_LIMITS = {
    "device": 0,
    "driver": _MAX_DRIVER,
    "attributes": _MAX_ENTRIES,
    "capacities": _MAX_ENTRIES,
    "domain": _MAX_DOMAIN,
    "name": _MAX_NAME,
    "attributes of a domain": _MAX_ENTRIES,
    "capacities of a domain": _MAX_ENTRIES,
    "attribute": _MAX_TEXT,
    "quantity": 0,
}
