"""Macros: has, all, exists, exists_one, map, filter, their two-variable forms, and cel.bind.

Each expands as in cel-go, so that types and cost come out alike.
Rules: https://github.com/google/cel-go/blob/v0.26.0/parser/macro.go and ext/comprehensions.go
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from modelplane.dra.selector.errors import CompileError
from modelplane.dra.selector.syntax import (
    ACCUMULATOR,
    ADD,
    AND,
    CONDITIONAL,
    EQUALS,
    NOT,
    NOT_STRICTLY_FALSE,
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

Error = Callable[[str, int], CompileError]

MAP_INSERT = "cel.@mapInsert"

_QUANTIFIERS = {"all": "all", "exists": "exists", "exists_one": "exists_one", "existsOne": "exists_one"}
_FORMS = {
    "all": (2, 3),
    "exists": (2, 3),
    "exists_one": (2, 3),
    "existsOne": (3,),
    "map": (2, 3),
    "filter": (2,),
    "transformList": (3, 4),
    "transformMap": (3, 4),
}


def function(error: Error, position: int, name: str, args: Sequence[Node]) -> Node:
    """A call without a target."""
    if name != "has" or len(args) != 1:
        return Call(position, name, args)
    field = args[0]
    if not isinstance(field, Select) or field.test:
        raise error('has() takes a field, as in has(a.b); use "b" in a for a key', position)
    return Select(field.position, field.operand, field.field, test=True)


def method(error: Error, position: int, target: Node, name: str, args: Sequence[Node]) -> Node:
    """A call with a target."""
    if name == "bind" and isinstance(target, Ident) and target.name == "cel" and len(args) == 3:
        return Bind(position, _variable(error, args[0]), args[1], args[2])
    if len(args) not in _FORMS.get(name, ()):
        return Call(position, name, args, target)
    count = 1 if name in ("map", "filter") else min(2, len(args) - 1)
    variables = tuple(_variable(error, node) for node in args[:count])
    if len(set(variables)) < count:
        raise error(f"{name}() needs two different variables", position)
    rest = args[count:]
    if name in _QUANTIFIERS:
        return _quantifier(position, _QUANTIFIERS[name], target, variables, rest[0])
    if name == "filter":
        return _collector(position, target, variables, rest[0], Ident(position, variables[0]), entries=False)
    test = rest[0] if len(rest) > 1 else None
    return _collector(position, target, variables, test, rest[-1], entries=name == "transformMap")


def _variable(error: Error, node: Node) -> str:
    if not isinstance(node, Ident):
        raise error("the variable of a macro must be a simple name", node.position)
    if node.name in (ACCUMULATOR, "__result__"):
        raise error(f"{node.name} cannot be a variable", node.position)
    return node.name


def _quantifier(position: int, kind: str, over: Node, variables: tuple[str, ...], test: Node) -> Node:
    def accumulator() -> Node:
        return Ident(position, ACCUMULATOR)

    def call(name: str, *args: Node) -> Node:
        return Call(position, name, args)

    if kind == "all":
        parts = (
            Literal(position, True),
            call(NOT_STRICTLY_FALSE, accumulator()),
            call(AND, accumulator(), test),
            accumulator(),
        )
    elif kind == "exists":
        parts = (
            Literal(position, False),
            call(NOT_STRICTLY_FALSE, call(NOT, accumulator())),
            call(OR, accumulator(), test),
            accumulator(),
        )
    else:
        parts = (
            Literal(position, 0),
            Literal(position, True),
            call(CONDITIONAL, test, call(ADD, accumulator(), Literal(position, 1)), accumulator()),
            call(EQUALS, accumulator(), Literal(position, 1)),
        )
    return Loop(position, kind, over, variables, parts, test, None)


def _collector(
    position: int, over: Node, variables: tuple[str, ...], test: Node | None, item: Node, *, entries: bool
) -> Node:
    if entries:
        step: Node = Call(position, MAP_INSERT, (Ident(position, ACCUMULATOR), Ident(position, variables[0]), item))
    else:
        step = Call(position, ADD, (Ident(position, ACCUMULATOR), ListNode(position, (item,))))
    if test is not None:
        step = Call(position, CONDITIONAL, (test, step, Ident(position, ACCUMULATOR)))
    initial: Node = MapNode(position, ()) if entries else ListNode(position, ())
    parts = (initial, Literal(position, True), step, Ident(position, ACCUMULATOR))
    return Loop(position, "map" if entries else "list", over, variables, parts, test, item)
