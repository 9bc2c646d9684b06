"""What an API server refuses in an object, and where."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+\Z")


class Problem(NamedTuple):
    """One reason an object is refused: a path such as `spec.pools[0].name`, and what is accepted there."""

    path: str
    message: str


def join(path: str, key: str | int) -> str:
    """Extend a path by a field, a map key or an index."""
    if isinstance(key, int) or not _PLAIN_KEY.match(key):
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


def kind_of(value: object) -> str:
    """Name the JSON type of a value, for a message."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, str):
        return "a string"
    if isinstance(value, list):
        return "an array"
    if isinstance(value, dict):
        return "an object"
    return "a number" if isinstance(value, (int, float)) else type(value).__name__


def quote(value: object) -> str:
    """Show a value in a message, cut to 80 characters."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 80 else text[:77] + "..."
