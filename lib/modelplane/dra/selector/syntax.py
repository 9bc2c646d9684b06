"""The syntax tree of a selector.

Nodes carry their offset in the text, their height, whether they stood in parentheses, and after checking their type.
"""

from __future__ import annotations

from collections.abc import Sequence

from modelplane.dra.selector.types import ERROR, Type

AND, OR, NOT, NEGATE = "_&&_", "_||_", "!_", "-_"
CONDITIONAL, INDEX, OPTIONAL_INDEX, OPTIONAL_SELECT = "_?_:_", "_[_]", "_[?_]", "_?._"
IN, EQUALS, NOT_EQUALS, ADD = "@in", "_==_", "_!=_", "_+_"
NOT_STRICTLY_FALSE = "@not_strictly_false"
ACCUMULATOR = "@result"


class Node:
    """Any part of an expression."""

    __slots__ = ("grouped", "height", "overloads", "position", "type")

    def __init__(self, position: int, children: Sequence[Node] = ()) -> None:
        self.position = position
        self.grouped = False
        self.height: int = 1 + max((child.height for child in children), default=0)
        self.type: Type = ERROR
        self.overloads: tuple[str, ...] = ()


class Literal(Node):
    """A constant: None, bool, int, Unsigned, float, str or bytes."""

    __slots__ = ("value",)

    def __init__(self, position: int, value: object) -> None:
        super().__init__(position)
        self.value = value


class Ident(Node):
    """A variable."""

    __slots__ = ("name",)

    def __init__(self, position: int, name: str) -> None:
        super().__init__(position)
        self.name = name


class Select(Node):
    """operand.field, or has(operand.field) if `test`."""

    __slots__ = ("field", "operand", "test")

    def __init__(self, position: int, operand: Node, field: str, *, test: bool = False) -> None:
        super().__init__(position, (operand,))
        self.operand = operand
        self.field = field
        self.test = test


class Call(Node):
    """A function, a method if it has a target, or an operator. `_&&_` and `_||_` take any number of arguments."""

    __slots__ = ("args", "function", "target")

    def __init__(self, position: int, function: str, args: Sequence[Node], target: Node | None = None) -> None:
        super().__init__(position, args if target is None else (target, *args))
        self.function = function
        self.args = list(args)
        self.target = target


class ListNode(Node):
    """[a, b]."""

    __slots__ = ("items",)

    def __init__(self, position: int, items: Sequence[Node]) -> None:
        super().__init__(position, items)
        self.items = tuple(items)


class MapNode(Node):
    """{a: b}."""

    __slots__ = ("entries",)

    def __init__(self, position: int, entries: Sequence[tuple[Node, Node]]) -> None:
        super().__init__(position, [node for entry in entries for node in entry])
        self.entries = tuple(entries)


class Bind(Node):
    """cel.bind(name, value, body): the value is computed at its first use."""

    __slots__ = ("body", "name", "value")

    def __init__(self, position: int, name: str, value: Node, body: Node) -> None:
        super().__init__(position, (value, body))
        self.name = name
        self.value = value
        self.body = body


class Loop(Node):
    """A comprehension, as cel-go expands it for checking and cost; `kind`, `test` and `item` are what it computes.

    kind all, exists, exists_one: `test` of each element. kind list, map: `item` of each element that passes `test`.
    """

    __slots__ = ("condition", "initial", "item", "kind", "over", "result", "step", "test", "variables")

    def __init__(
        self,
        position: int,
        kind: str,
        over: Node,
        variables: tuple[str, ...],
        parts: tuple[Node, Node, Node, Node],
        test: Node | None,
        item: Node | None,
    ) -> None:
        super().__init__(position, (over, *parts))
        self.kind = kind
        self.over = over
        self.variables = variables
        self.initial, self.condition, self.step, self.result = parts
        self.test = test
        self.item = item
