"""Walks over OpenAPI v3 schemas that tell a keyword from a property of the same name."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

Schema = dict[str, Any]

_CHILD = ("not", "items", "additionalProperties")
_CHILDREN = ("allOf", "anyOf", "oneOf")
_PROSE = ("description", "title", "example", "externalDocs")


def walk(schema: Schema, visit: Callable[[Schema], None]) -> None:
    """Call visit on a schema and on every schema below it, parents first."""
    visit(schema)
    for key in _CHILD:
        if isinstance(schema.get(key), dict):
            walk(schema[key], visit)
    for key in _CHILDREN:
        for child in schema.get(key) or ():
            walk(child, visit)
    for child in (schema.get("properties") or {}).values():
        walk(child, visit)


def strip(schema: Schema, *, messages: bool) -> None:
    """Remove prose from a schema in place; messages=False also removes the messages of its validation rules."""

    def visit(node: Schema) -> None:
        for key in _PROSE:
            node.pop(key, None)
        if not messages:
            for rule in node.get("x-kubernetes-validations") or ():
                rule.pop("message", None)
                rule.pop("messageExpression", None)

    walk(schema, visit)


def encode(value: object) -> str:
    """Write JSON that is the same on every machine, one line per entry near the root and compact below."""
    return _encode(value, 0, 5) + "\n"


def _encode(value: object, level: int, deepest: int) -> str:
    if level >= deepest or not isinstance(value, (dict, list)) or not value:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    pad = " " * (level + 1)
    if isinstance(value, dict):
        rows = [f"{pad}{json.dumps(key)}:{_encode(value[key], level + 1, deepest)}" for key in sorted(value)]
        return "{\n" + ",\n".join(rows) + "\n" + " " * level + "}"
    rows = [f"{pad}{_encode(item, level + 1, deepest)}" for item in value]
    return "[\n" + ",\n".join(rows) + "\n" + " " * level + "]"
