"""First pass over a selector's text: bounds it and removes what the grammar reads wrongly or slowly.

Runs in linear time. The masked text has the length of the original, so that positions agree: literals are blanked
(cel-python's string expressions backtrack exponentially), comments and trailing commas become spaces, and so do the
question marks of optional selection, whose places are returned.

Lexical rules: https://github.com/google/cel-go/blob/v0.26.0/parser/gen/CEL.g4
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from modelplane.dra.selector.errors import CompileError, Unsupported

MAX_BYTES = 10_240
MAX_NESTING = 249

TOO_DEEP = "nested too deeply for the fleet scheduler"

_PIECE = re.compile(
    r"""
      (?P<space>[ \t\r\n\f]+)
    | (?P<comment>//[^\n]*)
    | (?P<string>[bB]?(?:
          [rR](?:\"\"\"(?s:.)*?\"\"\"|'''(?s:.)*?'''|"[^"\n\r]*"|'[^'\n\r]*')
        | \"\"\"(?:[^\\"]|\\(?s:.)|"(?!""))*+\"\"\"
        | '''(?:[^\\']|\\(?s:.)|'(?!''))*+'''
        | "(?:[^"\\\n\r]|\\.)*+"
        | '(?:[^'\\\n\r]|\\.)*+'))
    | (?P<number>0x[0-9a-fA-F]++[uU]?|(?:[0-9]++(?:\.[0-9]++)?+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?+[uU]?)
    | (?P<word>[_a-zA-Z][_a-zA-Z0-9]*+)
    | (?P<mark>&&|\|\||[=!<>]=|[-+*/%!<>?:.,()\[\]{}])
    """,
    re.VERBOSE,
)
_PAIRS = {")": "(", "]": "[", "}": "{"}
_RESERVED_FIELDS = frozenset(("in", "true", "false", "null"))


@dataclass(slots=True)
class Scan:
    """The masked text and where its literals and optional selections are."""

    text: str
    masked: str = ""
    strings: dict[int, str] = field(default_factory=dict)
    numbers: dict[int, str] = field(default_factory=dict)
    optional: set[int] = field(default_factory=set)
    """Positions of field names after `.?` and of brackets before `?`."""
    indexes: list[bool] = field(default_factory=list)
    """For each a[b], in the order of closing brackets: whether it is a[?b]."""


def scan(text: str) -> Scan:
    """Scan a selector. Raises CompileError: too long, nested too deeply, unreadable."""
    if len(text) > MAX_BYTES or len(text.encode(errors="surrogatepass")) > MAX_BYTES:
        raise CompileError(f"the expression is longer than {MAX_BYTES} bytes")
    found = Scan(text)
    pieces: list[str] = []
    opened: list[tuple[str, bool, int]] = []  # the bracket, whether it follows an operand, its position
    operand = False  # whether the last piece ends an operand
    last = ""
    comma = -1  # index in pieces of a comma that nothing but space followed
    position = 0
    while position < len(text):
        match = _PIECE.match(text, position)
        if match is None:
            raise CompileError.at(_unreadable(text, position), text, position)
        kind, piece, start = match.lastgroup, match.group(), position
        position = match.end()
        if kind in ("space", "comment"):
            pieces.append(piece if kind == "space" else " " * len(piece))
            continue
        if kind == "mark":
            if piece in "([{":
                if len(opened) >= MAX_NESTING:
                    raise CompileError.at(TOO_DEEP, text, start)
                opened.append((piece, operand, start))
            elif piece in _PAIRS:
                if not opened or opened[-1][0] != _PAIRS[piece]:
                    raise CompileError.at(f"unexpected {piece!r}", text, start)
                _, after_operand, bracket = opened.pop()
                if piece == "]" and after_operand:
                    found.indexes.append(bracket in found.optional)
                if comma >= 0 and piece != ")" and not after_operand:
                    pieces[comma] = " "
            elif piece == "?" and last in (".", "["):
                if last == "[" and not opened[-1][1]:
                    raise Unsupported.at("optional list elements ([?x]) are not supported", text, start)
                if last == "[":
                    found.optional.add(opened[-1][2])
                pieces.append(" ")
                last += "?"
                continue
            elif piece == "?" and last == "{":
                raise Unsupported.at("optional map entries ({?k: v}) are not supported", text, start)
            comma = len(pieces) if piece == "," else -1
            operand = piece in (")", "]", "}")
            pieces.append(piece)
        else:
            if operand and piece != "in":
                raise CompileError.at(f"unexpected {_shown(piece)}", text, start)
            comma = -1
            operand = kind != "word" or piece != "in" or last in (".", ".?")
            if kind == "string":
                found.strings[start] = piece
                pieces.append('"' + "x" * (len(piece) - 2) + '"')
            elif kind == "number":
                if text[position : position + 1] == ".":
                    raise CompileError.at("a number needs digits after its point", text, start)
                found.numbers[start] = piece
                pieces.append("1" * len(piece))
            else:
                if last in (".", ".?") and piece in _RESERVED_FIELDS:
                    raise CompileError.at(f"{piece!r} is a keyword, not a field name", text, start)
                if last == ".?":
                    found.optional.add(start)
                pieces.append(piece)
        last = piece
    if opened:
        raise CompileError.at(f"{opened[-1][0]!r} is not closed", text, len(text))
    if not last:
        raise CompileError.at("the expression is empty", text, 0)
    found.masked = "".join(pieces)
    return found


def _unreadable(text: str, position: int) -> str:
    mark = text[position]
    if mark in "\"'":
        return "a string is not closed on its line"
    if mark == "`":
        return "escaped field names (`name`) are not admitted"
    return f"unexpected character {mark!r}"


def _shown(piece: str) -> str:
    return repr(piece if len(piece) <= 20 else piece[:17] + "...")
