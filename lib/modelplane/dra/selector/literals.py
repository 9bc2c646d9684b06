"""Constants of CEL: numbers and strings with their escapes.

Rules: https://github.com/google/cel-spec/blob/master/doc/langdef.md#string-and-bytes-values
"""

from __future__ import annotations

import re

from modelplane.dra.selector.values import INT_MAX, INT_MIN, UINT_MAX, Unsigned

_ESCAPE = re.compile(
    r"\\(?:(?P<plain>[abfnrtv\"'\\?`])|(?P<octal>[0-3][0-7][0-7])|[xX](?P<byte>[0-9a-fA-F]{2})"
    r"|u(?P<short>[0-9a-fA-F]{4})|U(?P<long>[0-9a-fA-F]{8})|(?P<bad>.?))",
    re.DOTALL,
)
_PLAIN = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def number(token: str, *, negative: bool) -> int | float:
    """The value of a number. Raises ValueError with what is wrong."""
    text = token.lower()
    if text[-1] == "u" and not negative:
        value = _integer(text[:-1])
        if value > UINT_MAX:
            raise ValueError("the number does not fit in 64 bits")
        return Unsigned(value)
    if text[-1] == "u":
        raise ValueError("an unsigned number has no sign")
    if not text.startswith("0x") and any(mark in text for mark in ".e"):
        return -float(text) if negative else float(text)
    value = -_integer(text) if negative else _integer(text)
    if not INT_MIN <= value <= INT_MAX:
        raise ValueError("the number does not fit in 64 bits")
    return value


def _integer(text: str) -> int:
    digits, base = (text[2:], 16) if text.startswith("0x") else (text, 10)
    digits = digits.lstrip("0") or "0"
    return int(digits, base) if len(digits) <= 20 else UINT_MAX + 1


def string(token: str) -> str | bytes:
    """The value of a string or bytes constant. Raises ValueError with what is wrong."""
    binary = token[0] in "bB"
    body = token[1:] if binary else token
    raw = body[0] in "rR"
    body = body[1:] if raw else body
    width = 3 if body[:3] in ('"""', "'''") and len(body) >= 6 else 1
    content = body[width:-width]
    if width == 3:
        content = content.replace("\r\n", "\n").replace("\r", "\n")
    if raw:
        return content.encode() if binary else content
    if binary:
        return b"".join(_pieces(content))
    return _ESCAPE.sub(_unescape, content)


def _unescape(match: re.Match[str]) -> str:
    kind, text = match.lastgroup, match[match.lastgroup or 0]
    if kind == "plain":
        return _PLAIN.get(text, text)
    if kind == "bad":
        raise ValueError(f"unknown escape {match.group()!r}")
    code = int(text, 8 if kind == "octal" else 16)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise ValueError(f"{match.group()} is not a character")
    return chr(code)


def _pieces(content: str) -> list[bytes]:
    pieces: list[bytes] = []
    position = 0
    for match in _ESCAPE.finditer(content):
        pieces.append(content[position : match.start()].encode())
        if match.lastgroup in ("short", "long"):
            raise ValueError(f"{match.group()} cannot stand in bytes")
        pieces.append(_unescape(match).encode("latin-1" if match.lastgroup in ("octal", "byte") else "utf-8"))
        position = match.end()
    return [*pieces, content[position:].encode()]
