"""Which attributes and capacities a selector reads, as far as its text tells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from modelplane.dra.selector.syntax import (
    IN,
    INDEX,
    OPTIONAL_INDEX,
    OPTIONAL_SELECT,
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

ATTRIBUTE, CAPACITY = "attribute", "capacity"
_KINDS = {"attributes": ATTRIBUTE, "capacity": CAPACITY}


class Key(NamedTuple):
    """An attribute or capacity by domain and name; None where only the device decides which."""

    kind: str
    domain: str | None
    name: str | None


class Place(NamedTuple):
    """How far into the device an expression leads: `depth` 0 is the device, 1 a kind, 2 a domain, 3 a value."""

    depth: int
    kind: str | None = None
    domain: str | None = None
    name: str | None = None


Aliases = Mapping[str, "Place | None"]


def place_of(node: Node, aliases: Aliases) -> Place | None:
    """Where in the device an expression leads, or None if it is not a path into it."""
    if isinstance(node, Ident):
        return aliases[node.name] if node.name in aliases else Place(0)
    step = _step(node)
    if step is None:
        return None
    base = place_of(step[0], aliases)
    if base is None or base.depth > 2:
        return None
    key = step[1]
    if base.depth == 0:
        return Place(1, _KINDS.get(key or "", key))
    if base.depth == 1:
        return Place(2, base.kind, key) if base.kind in _KINDS.values() else None
    return Place(3, base.kind, base.domain, key)


def _step(node: Node) -> tuple[Node, str | None] | None:
    """The operand and the key of a selection or index; the key is None if it is not constant."""
    if isinstance(node, Select):
        return node.operand, node.field
    if isinstance(node, Call) and node.function in (INDEX, OPTIONAL_INDEX, OPTIONAL_SELECT):
        operand, key = node.args
        return operand, key.value if isinstance(key, Literal) and isinstance(key.value, str) else None
    return None


def keys(root: Node) -> tuple[frozenset[Key], bool]:
    """The keys that a selector reads, and whether it reads the driver."""
    read = frozenset(_read(root, {}))
    return frozenset(key for key in read if isinstance(key, Key)), None in read


def _read(node: Node, aliases: Aliases) -> Iterator[Key | None]:
    place = place_of(node, aliases)
    if place is not None:
        yield from _keys_at(place)
        yield from _read_indexes(node, aliases)
    elif isinstance(node, Select):
        yield from _read(node.operand, aliases)
    elif isinstance(node, Call):
        where = place_of(node.args[1], aliases) if node.function == IN else None
        if where is not None and where.depth in (1, 2) and isinstance(node.args[0], Literal):
            key = node.args[0].value if isinstance(node.args[0].value, str) else None
            yield from _keys_at(where._replace(domain=key) if where.depth == 1 else where._replace(depth=3, name=key))
            return
        for part in (node.target, *node.args):
            if part is not None:
                yield from _read(part, aliases)
    elif isinstance(node, ListNode):
        for item in node.items:
            yield from _read(item, aliases)
    elif isinstance(node, MapNode):
        for key_node, value in node.entries:
            yield from _read(key_node, aliases)
            yield from _read(value, aliases)
    elif isinstance(node, Bind):
        bound = place_of(node.value, aliases)
        if bound is None:
            yield from _read(node.value, aliases)
        else:
            yield from _read_indexes(node.value, aliases)
        yield from _read(node.body, {**aliases, node.name: bound})
    elif isinstance(node, Loop):
        yield from _read(node.over, aliases)
        inner = {**aliases, **dict.fromkeys(node.variables)}
        if len(node.variables) > 1:
            over = place_of(node.over, aliases)
            inner[node.variables[1]] = _element(over) if over is not None else None
        for part in (node.test, node.item):
            if part is not None:
                yield from _read(part, inner)


def _element(over: Place) -> Place | None:
    return over._replace(depth=over.depth + 1) if over.depth in (1, 2) else None


def _keys_at(place: Place) -> Iterator[Key | None]:
    if place.depth == 0:
        yield from (Key(ATTRIBUTE, None, None), Key(CAPACITY, None, None), None)
    elif place.kind in _KINDS.values():
        yield Key(str(place.kind), place.domain, place.name)
    else:
        yield None


def _read_indexes(node: Node, aliases: Aliases) -> Iterator[Key | None]:
    """What the indexes along a path read themselves, as in device.attributes[device.driver]."""
    while (step := _step(node)) is not None:
        if isinstance(node, Call) and not isinstance(node.args[1], Literal):
            yield from _read(node.args[1], aliases)
        node = step[0]
