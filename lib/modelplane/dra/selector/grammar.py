"""Text to syntax tree, with the grammar of cel-python.

Only its grammar is used: its evaluator changes the process's recursion limit and checks no types. The tree is built
while parsing, without recursion.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lark import Lark, Token
from lark.exceptions import UnexpectedCharacters, UnexpectedToken, VisitError

from modelplane.dra.selector import literals, macros
from modelplane.dra.selector.errors import CompileError, Unsupported
from modelplane.dra.selector.scan import TOO_DEEP, Scan, scan
from modelplane.dra.selector.syntax import (
    ADD,
    AND,
    CONDITIONAL,
    EQUALS,
    IN,
    INDEX,
    NEGATE,
    NOT,
    NOT_EQUALS,
    OPTIONAL_INDEX,
    OPTIONAL_SELECT,
    OR,
    Call,
    Ident,
    ListNode,
    Literal,
    MapNode,
    Node,
    Select,
)

MAX_TERMS = 1000
MAX_HEIGHT = 64

_RESERVED = frozenset(
    (
        *("as", "break", "const", "continue", "else", "for", "function", "if", "import", "in"),
        *("let", "loop", "package", "namespace", "return", "var", "void", "while"),
    )
)
_OPERATORS = {
    "relation_lt": "_<_",
    "relation_le": "_<=_",
    "relation_gt": "_>_",
    "relation_ge": "_>=_",
    "relation_eq": EQUALS,
    "relation_ne": NOT_EQUALS,
    "relation_in": IN,
    "addition_add": ADD,
    "addition_sub": "_-_",
    "multiplication_mul": "_*_",
    "multiplication_div": "_/_",
    "multiplication_mod": "_%_",
}

_lock = threading.Lock()


def parse(text: str) -> Node:
    """The syntax tree of a selector, macros expanded. Raises CompileError."""
    found = scan(text)
    parser, builder = _parser()
    with _lock:
        builder.start(found)
        try:
            tree = parser.parse(found.masked)
        except VisitError as error:
            if isinstance(error.orig_exc, CompileError):
                raise error.orig_exc from None
            raise CompileError(f"cannot read the expression: {error.orig_exc}") from None
        except UnexpectedToken as error:
            raise _unexpected(text, error.token) from None
        except UnexpectedCharacters as error:
            raise CompileError.at("unexpected character", text, error.pos_in_stream or 0) from None
        except CompileError:
            raise
        except Exception as error:
            raise CompileError(f"cannot read the expression: {type(error).__name__}") from None
    if not isinstance(tree, Node):
        raise CompileError("cannot read the expression")
    return tree


def _unexpected(text: str, token: Token) -> CompileError:
    position = token.start_pos if token.type != "$END" and token.start_pos is not None else len(text)
    if position >= len(text):
        return CompileError.at("the expression ends too early", text, len(text))
    shown = text[position : position + len(token)]
    return CompileError.at(f"unexpected {shown if len(shown) <= 20 else shown[:17] + '...'!r}", text, position)


def _grammar_file() -> Path:
    """cel-python's grammar, found without importing the rest of it: its evaluator costs 7 MiB and is not used."""
    spec = find_spec("celpy")
    if spec is None or not spec.submodule_search_locations:
        message = "cel-python is not installed"
        raise ImportError(message)
    return Path(spec.submodule_search_locations[0]) / "cel.lark"


@cache
def _parser() -> tuple[Lark, _Builder]:
    grammar = _grammar_file().read_text()
    builder = _Builder()
    parser = Lark(
        grammar,
        parser="lalr",
        start="expr",
        g_regex_flags=re.M,
        lexer_callbacks={"IDENT": _word},
        maybe_placeholders=False,
        priority="invert",
        transformer=builder,
    )
    return parser, builder


def _word(token: Token) -> Token:
    return Token.new_borrow_pos("BOOL_LIT", token.value, token) if token in ("true", "false") else token


class _Builder:
    """Turns each rule of the grammar into a node as soon as the parser has read it."""

    def __init__(self) -> None:
        self.start(Scan(""))
        for rule, function in _OPERATORS.items():
            setattr(self, rule, _operator(function))

    def start(self, found: Scan) -> None:
        self.scan = found
        self._closed = 0
        self._minus: dict[int, int] = {}

    def _error(self, message: str, position: int) -> CompileError:
        return CompileError.at(message, self.scan.text, position)

    def _check(self, node: Node) -> Node:
        if node.height > MAX_HEIGHT:
            raise self._error(TOO_DEEP, node.position)
        return node

    def _only(self, children: list[Any]) -> Any:
        return children[0]

    member = primary = _only

    def paren_expr(self, children: list[Any]) -> Node:
        node: Node = children[0]
        node.grouped = True
        return node

    def expr(self, children: list[Any]) -> Node:
        if len(children) == 1:
            return children[0]  # type: ignore[no-any-return]
        return self._check(Call(children[0].position, CONDITIONAL, children))

    def _chain(self, function: str, children: list[Any]) -> Node:
        if len(children) == 1:
            return children[0]  # type: ignore[no-any-return]
        left, right = children
        if not isinstance(left, Call) or left.function != function:
            return self._check(Call(left.position, function, children))
        if len(left.args) >= MAX_TERMS:
            raise self._error(f"more than {MAX_TERMS} terms in one chain of {function[1:3]}", right.position)
        left.args.append(right)
        left.height = max(left.height, 1 + right.height)
        return self._check(left)

    def conditionalor(self, children: list[Any]) -> Node:
        return self._chain(OR, children)

    def conditionaland(self, children: list[Any]) -> Node:
        return self._chain(AND, children)

    def _binary(self, children: list[Any]) -> Node:
        if len(children) == 1:
            return children[0]  # type: ignore[no-any-return]
        (function, left), right = children
        return self._check(Call(left.position, function, (left, right)))

    relation = addition = multiplication = _binary

    def unary_not(self, _children: list[Any]) -> str:
        return NOT

    def unary_neg(self, _children: list[Any]) -> str:
        return NEGATE

    def unary(self, children: list[Any]) -> Node:
        if len(children) == 1:
            return children[0]  # type: ignore[no-any-return]
        function, operand = children
        if function == NEGATE and isinstance(operand, Literal) and not operand.grouped:
            number = self._signed(operand)
            if number is not None:
                return number
        if isinstance(operand, Call) and operand.function == function and not operand.grouped:
            return operand.args[0]
        return self._check(Call(operand.position, function, (operand,)))

    def _signed(self, number: Literal) -> Literal | None:
        """The number after one more minus: the first is its sign, and a second takes that away again."""
        start = number.position + (self.scan.text[number.position] == "-")
        if start not in self.scan.numbers:
            return None
        count = self._minus.get(start, start - number.position) + 1
        self._minus[start] = count
        if count > 2:
            return None
        try:
            return Literal(start, literals.number(self.scan.numbers[start], negative=count == 1))
        except ValueError as error:
            raise self._error(str(error), start) from None

    def member_dot(self, children: list[Any]) -> Node:
        operand, name = children
        position = name.start_pos
        if position in self.scan.optional:
            return self._check(Call(position, OPTIONAL_SELECT, (operand, Literal(position, str(name)))))
        return self._check(Select(position, operand, str(name)))

    def member_dot_arg(self, children: list[Any]) -> Node:
        target, name, args = children[0], children[1], children[2] if len(children) > 2 else []
        if name.start_pos in self.scan.optional:
            raise self._error("a method cannot follow .?", name.start_pos)
        return self._check(macros.method(self._error, name.start_pos, target, str(name), args))

    def member_index(self, children: list[Any]) -> Node:
        operand, index = children
        self._closed += 1
        function = OPTIONAL_INDEX if self.scan.indexes[self._closed - 1] else INDEX
        return self._check(Call(index.position, function, (operand, index)))

    def member_object(self, children: list[Any]) -> Node:
        raise Unsupported.at("messages (Type{...}) are not supported", self.scan.text, children[0].position)

    def dot_ident(self, children: list[Any]) -> Node:
        raise Unsupported.at("a leading dot is not supported", self.scan.text, children[0].start_pos)

    dot_ident_arg = dot_ident

    def ident(self, children: list[Any]) -> Node:
        name = children[0]
        if name == "null":
            return Literal(name.start_pos, None)
        if name in _RESERVED:
            raise self._error(f"{str(name)!r} is a reserved word", name.start_pos)
        return Ident(name.start_pos, str(name))

    def ident_arg(self, children: list[Any]) -> Node:
        name, args = children[0], children[1] if len(children) > 1 else []
        if name in _RESERVED or name == "null":
            raise self._error(f"{str(name)!r} is a reserved word", name.start_pos)
        return self._check(macros.function(self._error, name.start_pos, str(name), args))

    def exprlist(self, children: list[Any]) -> list[Any]:
        return children

    mapinits = exprlist

    def list_lit(self, children: list[Any]) -> Node:
        items = children[0] if children else []
        return self._check(ListNode(items[0].position if items else 0, items))

    def map_lit(self, children: list[Any]) -> Node:
        flat = children[0] if children else []
        entries = list(zip(flat[::2], flat[1::2], strict=True))
        return self._check(MapNode(flat[0].position if flat else 0, entries))

    def literal(self, children: list[Any]) -> Node:
        token = children[0]
        position = token.start_pos
        if token.type == "BOOL_LIT":
            return Literal(position, token == "true")  # noqa: S105
        if token.type == "NULL_LIT":
            return Literal(position, None)
        try:
            if position in self.scan.strings:
                return Literal(position, literals.string(self.scan.strings[position]))
            negative = token.startswith("-")
            return Literal(position, literals.number(self.scan.numbers[position + negative], negative=negative))
        except ValueError as error:
            raise self._error(str(error), position) from None


def _operator(function: str) -> Callable[[list[Any]], tuple[str, Any]]:
    return lambda children: (function, children[0])
