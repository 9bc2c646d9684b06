"""Type checking: the same selectors compile here as on an API server.

Rules: https://github.com/google/cel-go/blob/v0.26.0/checker/checker.go
"""

from __future__ import annotations

from modelplane.dra.selector.declarations import (
    DEVICE_FIELDS,
    FUNCTIONS,
    UNSUPPORTED_FIELDS,
    UNSUPPORTED_FUNCTIONS,
    UNSUPPORTED_NAMES,
    VARIABLES,
    Overload,
)
from modelplane.dra.selector.errors import CompileError, Unsupported
from modelplane.dra.selector.regex import RegexError, compiled
from modelplane.dra.selector.syntax import (
    ACCUMULATOR,
    AND,
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
from modelplane.dra.selector.types import (
    ANY,
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    INT,
    NULL,
    STRING,
    UINT,
    Substitutions,
    Type,
    assignable,
    is_dyn,
    list_of,
    map_of,
    most_general,
    optional_of,
    param,
    substitute,
)
from modelplane.dra.selector.values import Unsigned

MAX_PATTERN_BYTES = 1_000

_REGEX_FUNCTIONS = frozenset(("matches", "find", "findAll"))


def check(root: Node, text: str) -> int:
    """Give every node its type and overloads; returns the length of all constant patterns. Raises CompileError."""
    checker = _Checker(text)
    result = substitute(checker.found, checker.visit(root), free=DYN)
    for node in checker.visited:
        node.type = substitute(checker.found, node.type, free=DYN)
    checker.check_aggregates()
    if result not in (BOOL, ANY):
        raise checker.error(f"a selector must be a bool, not {result}", root)
    return checker.pattern_bytes


class _Checker:
    def __init__(self, text: str) -> None:
        self.found: Substitutions = {}
        self.visited: list[Node] = []
        self._text = text
        self._scopes: dict[str, list[Type]] = {name: [kind] for name, kind in VARIABLES.items()}
        self._free = 0
        self.pattern_bytes = 0

    def error(self, message: str, node: Node) -> CompileError:
        return CompileError.at(message, self._text, node.position)

    def _unsupported(self, what: str, node: Node) -> CompileError:
        return Unsupported.at(f"{what} is not supported by the fleet scheduler", self._text, node.position)

    def visit(self, node: Node) -> Type:
        if isinstance(node, Literal):
            kind = _literal(node)
        elif isinstance(node, Ident):
            kind = self._ident(node)
        elif isinstance(node, Select):
            kind = self._select(node)
        elif isinstance(node, Call):
            kind = self._call(node)
        elif isinstance(node, ListNode):
            kind = self._list(node)
        elif isinstance(node, MapNode):
            kind = self._map(node)
        elif isinstance(node, Bind):
            self._enter(node.name, self.visit(node.value))
            kind = self.visit(node.body)
            self._leave(node.name)
        elif isinstance(node, Loop):
            kind = self._loop(node)
        else:
            raise self.error("cannot read the expression", node)
        node.type = kind
        self.visited.append(node)
        return kind

    def _enter(self, name: str, kind: Type) -> None:
        self._scopes.setdefault(name, []).append(kind)

    def _leave(self, name: str) -> None:
        self._scopes[name].pop()

    def _free_type(self) -> Type:
        self._free += 1
        return param(f"_{self._free}")

    def _assign(self, *pairs: tuple[Type, Type]) -> bool:
        found = assignable(self.found, list(pairs))
        if found is None:
            return False
        self.found = found
        return True

    def _resolved(self, kind: Type) -> Type:
        return substitute(self.found, kind)

    def _ident(self, node: Ident) -> Type:
        scope = self._scopes.get(node.name)
        if scope:
            return scope[-1]
        if node.name in UNSUPPORTED_NAMES:
            raise self._unsupported(f"the type value {node.name}", node)
        raise self.error(f"undeclared reference to {node.name!r}", node)

    def _select(self, node: Select) -> Type:
        qualified = _qualified(node)
        if qualified in UNSUPPORTED_NAMES:
            raise self._unsupported(f"the type value {qualified}", node)
        kind = self._field(node, node.operand, node.field, optional=False)
        return BOOL if node.test else kind

    def _field(self, node: Node, operand: Node, field: str, *, optional: bool) -> Type:
        whole = self._resolved(self.visit(operand))
        kind = whole.params[0] if whole.kind == "optional" else whole
        if kind.kind == "map":
            result = kind.params[1]
        elif kind.kind == "struct":
            result = self._device_field(node, kind, field)
        elif kind.kind == "param":
            self._assign((DYN, kind))
            result = DYN
        elif is_dyn(kind):
            result = DYN
        else:
            raise self.error(f"type {kind} has no fields", node)
        return self._resolved(optional_of(result) if optional or whole.kind == "optional" else result)

    def _device_field(self, node: Node, kind: Type, field: str) -> Type:
        if kind == VARIABLES["device"] and field in DEVICE_FIELDS:
            return DEVICE_FIELDS[field]
        if kind == VARIABLES["device"] and field in UNSUPPORTED_FIELDS:
            raise self._unsupported(f"device.{field}", node)
        known = ", ".join(sorted(DEVICE_FIELDS)) if kind == VARIABLES["device"] else ""
        raise self.error(f"undefined field {field!r}" + (f"; a device has {known}" if known else ""), node)

    def _call(self, node: Call) -> Type:
        if node.function == OPTIONAL_SELECT:
            operand, name = node.args
            self.visit(name)
            kind = self._field(node, operand, str(name.value) if isinstance(name, Literal) else "", optional=True)
            node.overloads = ("select_optional_field",)
            return kind
        if node.function in UNSUPPORTED_FUNCTIONS:
            raise self._unsupported(f"{node.function}()", node)
        args = [self.visit(arg) for arg in node.args]
        if node.function in (AND, OR):
            for arg, kind in zip(node.args, args, strict=True):
                if not self._assign((kind, BOOL)):
                    raise self.error(f"expected a bool, found {self._resolved(kind)}", arg)
            node.overloads = ("logical",)
            return BOOL
        if node.target is not None:
            prefix = _qualified(node.target)
            full = f"{prefix}.{node.function}" if prefix else ""
            if full in UNSUPPORTED_FUNCTIONS:
                raise self._unsupported(f"{full}()", node)
            if full in FUNCTIONS:
                node.function, node.target = full, None
            else:
                args.insert(0, self.visit(node.target))
        overloads = FUNCTIONS.get(node.function)
        if overloads is None:
            raise self.error(f"undeclared reference to {node.function!r}", node)
        return self._overload(node, overloads, args)

    def _overload(self, node: Call, overloads: list[Overload], args: list[Type]) -> Type:
        member = node.target is not None
        result: Type | None = None
        names: list[str] = []
        for overload in overloads:
            if overload.member != member or len(overload.args) != len(args):
                continue
            wanted, returned = overload.args, overload.result
            if overload.generic:
                fresh: Substitutions = {param("A"): self._free_type(), param("B"): self._free_type()}
                wanted = tuple(substitute(fresh, kind) for kind in wanted)
                returned = substitute(fresh, returned)
            if not self._assign(*zip(args, wanted, strict=True)):
                continue
            names.append(overload.name)
            returned = self._resolved(returned)
            if result is None:
                result = returned
            elif not is_dyn(result) and returned != result:
                result = DYN
        if result is None:
            shown = [str(substitute(self.found, kind, free=DYN)) for kind in args]
            call = f"{shown[0]}.{node.function}({', '.join(shown[1:])})" if member else _signature(node.function, shown)
            raise self.error(f"no overload of {node.function.strip('_@')} for {call}", node)
        node.overloads = tuple(dict.fromkeys(names))
        self._check_regex(node)
        return result

    def _check_regex(self, node: Call) -> None:
        if node.function not in _REGEX_FUNCTIONS:
            return
        pattern = node.args[0] if node.target is not None else node.args[1]
        if isinstance(pattern, Literal) and isinstance(pattern.value, str):
            self.pattern_bytes += len(pattern.value.encode())
            if self.pattern_bytes > MAX_PATTERN_BYTES:
                raise self._unsupported(f"a regular expression of more than {MAX_PATTERN_BYTES} bytes", pattern)
            try:
                compiled(pattern.value)
            except RegexError as error:
                raise self.error(f"invalid regular expression: {error}", pattern) from None

    def _join(self, node: Node, previous: Type | None, kind: Type) -> Type:
        if previous is None:
            return kind
        if self._assign((previous, kind)):
            return most_general(previous, kind)
        raise self.error(f"expected {self._resolved(previous)}, found {self._resolved(kind)}", node)

    def _list(self, node: ListNode) -> Type:
        kind: Type | None = None
        for item in node.items:
            kind = self._join(item, kind, self.visit(item))
        return list_of(kind or self._free_type())

    def _map(self, node: MapNode) -> Type:
        key_kind: Type | None = None
        value_kind: Type | None = None
        for key, value in node.entries:
            key_kind = self._join(key, key_kind, self.visit(key))
            value_kind = self._join(value, value_kind, self.visit(value))
        return map_of(key_kind or self._free_type(), value_kind or self._free_type())

    def _loop(self, node: Loop) -> Type:
        over = self._resolved(self.visit(node.over))
        initial = self.visit(node.initial)
        if over.kind == "list":
            variables: tuple[Type, ...] = (over.params[0],) if len(node.variables) == 1 else (INT, over.params[0])
        elif over.kind == "map":
            variables = over.params[: len(node.variables)]
        elif over.kind in ("dyn", "param"):
            self._assign((DYN, over))
            variables = (DYN,) * len(node.variables)
        else:
            raise self.error(f"{over} cannot be iterated; only lists and maps can", node.over)
        self._enter(ACCUMULATOR, initial)
        for name, kind in zip(node.variables, variables, strict=True):
            self._enter(name, kind)
        self._expect(node.condition, BOOL)
        self._expect(node.step, initial)
        for name in node.variables:
            self._leave(name)
        result = self.visit(node.result)
        self._leave(ACCUMULATOR)
        return self._resolved(result)

    def _expect(self, node: Node, kind: Type) -> None:
        if not self._assign((kind, self.visit(node))):
            raise self.error(f"expected {self._resolved(kind)}, found {self._resolved(node.type)}", node)

    def check_aggregates(self) -> None:
        """Elements of a list, and keys and values of a map, must all have one type."""
        for node in self.visited:
            if isinstance(node, ListNode):
                self._same(node.items)
            elif isinstance(node, MapNode):
                self._same([key for key, _ in node.entries])
                self._same([value for _, value in node.entries])

    def _same(self, nodes: tuple[Node, ...] | list[Node]) -> None:
        for node in nodes[1:]:
            if node.type != nodes[0].type:
                raise self.error(f"expected {nodes[0].type}, found {node.type}", node)


def _literal(node: Literal) -> Type:
    value = node.value
    if value is None:
        return NULL
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, Unsigned):
        return UINT
    return {int: INT, float: DOUBLE, str: STRING, bytes: BYTES}[type(value)]


def _qualified(node: Node) -> str:
    parts: list[str] = []
    while isinstance(node, Select) and not node.test:
        parts.append(node.field)
        node = node.operand
    return ".".join([node.name, *reversed(parts)]) if isinstance(node, Ident) else ""


def _signature(function: str, args: list[str]) -> str:
    operator = function.strip("_@")
    if function[0] in "_@!-" and len(args) == 2:
        return f"{args[0]} {operator} {args[1]}"
    return f"({', '.join(args)})"
