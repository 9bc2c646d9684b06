"""Regular expressions: RE2, whose time is linear in the text."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import re2

_MAX_MEMORY = 1 << 20
_COMPILED = 1024


class RegexError(ValueError):
    """A pattern RE2 refuses."""


_ESCAPE = re.compile(r"\\Q(?:(?!\\E).)*(?:\\E)?|\\(.)", re.DOTALL)


@lru_cache(_COMPILED)
def _compile(pattern: str) -> Any:
    if any(match[1] == "C" for match in _ESCAPE.finditer(pattern)):
        return RegexError(r"\C (any byte) is not known to the API server")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MAX_MEMORY
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0] if error.args else error
        return RegexError(reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason))


def compiled(pattern: str) -> Any:
    """The compiled pattern. Raises RegexError."""
    found = _compile(pattern)
    if isinstance(found, RegexError):
        raise RegexError(*found.args)
    return found


def matches(text: str, pattern: str) -> bool:
    """Whether any part of the text matches. Raises RegexError."""
    return compiled(pattern).search(text) is not None


def find(text: str, pattern: str) -> str:
    """The first match, or "". Raises RegexError."""
    match = compiled(pattern).search(text)
    return match.group(0) if match is not None else ""


def find_all(text: str, pattern: str, limit: int = -1) -> tuple[str, ...]:
    """The first `limit` matches, all if it is negative. Raises RegexError."""
    found: list[str] = []
    for match in compiled(pattern).finditer(text):
        if limit >= 0 and len(found) >= limit:
            break
        found.append(match.group(0))
    return tuple(found)
