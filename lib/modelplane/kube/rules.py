"""Validation rules of structural schemas: evaluate `x-kubernetes-validations` on an object.

A rule this module cannot judge is reported as skipped; it never passes silently and never breaks the caller.
Source: https://kubernetes.io/docs/reference/using-api/cel/
"""

from __future__ import annotations

import base64
import functools
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import celpy
from celpy import celtypes

from modelplane.kube import rule_functions
from modelplane.kube.problem import Problem, join
from modelplane.kube.schema import Schema

_MACROS = frozenset({"has", "all", "exists", "exists_one", "map", "filter"})
_BASE = frozenset(celpy.evaluation.base_functions) | {"dyn"}
_FUNCTIONS = rule_functions.FUNCTIONS
_KNOWN = _MACROS | _BASE | frozenset(_FUNCTIONS)
_NAMESPACES = frozenset({"cel", "cidr", "format", "ip", "math", "semver", "sets", "optional"})
_OLD = re.compile(r"\boldSelf\b")
_STRING = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'")
_RESERVED = frozenset(
    {"true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import"}
    | {"let", "loop", "package", "namespace", "return", "var", "void", "while"}
)


class Skipped(NamedTuple):
    """A rule that was not judged, where it applies, and why not."""

    path: str
    rule: str
    why: str


class Verdict(NamedTuple):
    """What the rules refuse, and the rules that could not be judged."""

    problems: list[Problem]
    skipped: list[Skipped]


def check(schema: Schema, value: object, old: object = None, path: str = "") -> Verdict:
    """Evaluate every rule of a schema on an object whose defaults are applied (`schema.apply_defaults`).

    A rule that reads oldSelf is judged only where `old` has a value at the same place, as on an update.
    """
    verdict = Verdict([], [])
    for finding in _walk(schema, value, old, path, root=not path):
        if isinstance(finding, Skipped):
            verdict.skipped.append(finding)
        else:
            verdict.problems.append(finding)
    return verdict


def _walk(schema: Schema, value: object, old: object, path: str, root: bool = False) -> Iterator[Problem | Skipped]:
    if value is None:
        return
    rules = schema.get("x-kubernetes-validations")
    if rules:
        try:
            names = {"self": to_cel(schema, value, root)}
            if old is not None:
                names["oldSelf"] = to_cel(schema, old, root)
        except (TypeError, ValueError, OverflowError) as error:
            yield from (Skipped(path or "object", str(rule.get("rule")), _first_line(error)) for rule in rules)
        else:
            for rule in rules:
                yield from _judge(rule, names, path)
    if isinstance(value, dict):
        before = old if isinstance(old, dict) else {}
        extra = schema.get("additionalProperties")
        properties = schema.get("properties") or {}
        for name, item in value.items():
            child = properties.get(name, extra)
            if isinstance(child, Mapping):
                yield from _walk(child, item, before.get(name), join(path, name))
    elif isinstance(value, list) and isinstance(schema.get("items"), Mapping):
        earlier = _by_key(schema, old)
        for index, item in enumerate(value):
            yield from _walk(schema["items"], item, earlier.get(_key(schema, item)), join(path, index))


def _by_key(schema: Schema, old: object) -> dict[tuple[str, ...] | None, object]:
    if not isinstance(old, list):
        return {}
    return {key: item for item in old if (key := _key(schema, item)) is not None}


def _key(schema: Schema, item: object) -> tuple[str, ...] | None:
    keys = schema.get("x-kubernetes-list-map-keys")
    if schema.get("x-kubernetes-list-type") != "map" or not keys or not isinstance(item, dict):
        return None
    return tuple(repr(item.get(key)) for key in keys)


def _judge(rule: Mapping[str, Any], names: dict[str, Any], path: str) -> Iterator[Problem | Skipped]:
    text = str(rule.get("rule", ""))
    where = (path + str(rule.get("fieldPath", ""))).lstrip(".") or "object"
    if _OLD.search(_STRING.sub("", text)):
        if rule.get("optionalOldSelf"):
            yield Skipped(where, text, "optionalOldSelf is not supported")
            return
        if "oldSelf" not in names:
            return
    program = _compile(text)
    if isinstance(program, str):
        yield Skipped(where, text, program)
        return
    try:
        holds = program.evaluate(names)
    except Exception as error:  # the evaluator raises many types of its own
        why = _first_line(error)
        if _is_verdict(error):
            yield Problem(where, f"rule cannot be evaluated: {text} ({why})")
        else:
            yield Skipped(where, text, why)
        return
    if not isinstance(holds, (bool, celtypes.BoolType)):
        yield Skipped(where, text, "does not return a boolean")
    elif not holds:
        yield Problem(where, _message(rule, names, text))


def _is_verdict(error: Exception) -> bool:
    """Say whether an API server fails here too: a missing field or index, or an argument without a result.

    Other errors are limits of this evaluator, such as two types it cannot compare.
    """
    kinds = [part for part in error.args[1:2] if isinstance(part, type)]
    undeclared = str(error.args[0] if error.args else "").startswith("undeclared reference")
    return not undeclared and any(issubclass(kind, (LookupError, ValueError, ZeroDivisionError)) for kind in kinds)


def _message(rule: Mapping[str, Any], names: dict[str, Any], text: str) -> str:
    if "messageExpression" in rule:
        program = _compile(str(rule["messageExpression"]))
        if not isinstance(program, str):
            try:
                return str(program.evaluate(names))
            except Exception:  # as in an API server, a message that cannot be made gives way to the fixed one
                return str(rule.get("message", f"failed rule: {text}"))
    return str(rule.get("message", f"failed rule: {text}"))


@functools.lru_cache(maxsize=2048)
def _compile(text: str) -> celpy.Runner | str:
    """Compile an expression, or say why it cannot be judged."""
    environment = celpy.Environment()
    try:
        tree = environment.compile(text)
    except Exception as error:  # a parser error of the evaluator or of its parser generator
        return f"cannot be parsed: {_first_line(error)}"
    unknown = _unknown_calls(tree)
    if unknown:
        return f"calls {', '.join(unknown)}, which is not supported"
    return environment.program(tree, functions=dict(_FUNCTIONS))


def _unknown_calls(tree: Any) -> list[str]:
    unknown = set()
    for node in tree.find_data("ident_arg"):
        unknown |= {str(node.children[0])} - _KNOWN
    for node in tree.find_data("member_dot_arg"):
        name = str(node.children[1])
        receiver = [str(token) for token in node.children[0].scan_values(lambda _: True)]
        arguments = node.children[2:] and len(node.children[2].children)
        if len(receiver) == 1 and receiver[0] in _NAMESPACES:
            unknown.add(f"{receiver[0]}.{name}")
        elif name not in _KNOWN or (name in _MACROS and arguments != 2):
            unknown.add(name)
    return sorted(unknown)


def to_cel(schema: Schema, value: Any, root: bool = False) -> Any:
    """Convert a value as its schema types it: fields that the schema does not name cannot be read by a rule."""
    if value is None:
        return None
    if isinstance(value, bool):
        return celtypes.BoolType(value)
    if isinstance(value, float) and not value.is_integer():
        return celtypes.DoubleType(value)
    if isinstance(value, (int, float)):
        return celtypes.IntType(int(value))
    if isinstance(value, str):
        return _text(schema.get("format"), value)
    if isinstance(value, list):
        items = schema.get("items") or {}
        return celtypes.ListType([to_cel(items, item) for item in value])
    if isinstance(value, dict):
        return _map(schema, value, root)
    raise TypeError(f"{type(value).__name__} is no JSON value")


def _map(schema: Schema, value: dict[str, Any], root: bool) -> celtypes.MapType:
    properties = dict(schema.get("properties") or {})
    extra = schema.get("additionalProperties")
    if root or schema.get("x-kubernetes-embedded-resource"):
        plain = {"type": "string"}
        meta = {"type": "object", "properties": {"name": plain, "generateName": plain}}
        properties |= {"apiVersion": plain, "kind": plain, "metadata": meta}
    out: dict[Any, Any] = {}
    for name, item in value.items():
        if name in properties:
            if item is not None or properties[name].get("nullable"):
                out[celtypes.StringType(escape(name))] = to_cel(properties[name], item)
        elif extra:
            out[celtypes.StringType(name)] = to_cel(extra if isinstance(extra, Mapping) else {}, item)
    return celtypes.MapType(out)


def _text(form: object, value: str) -> Any:
    try:
        if form == "date-time":
            return celtypes.TimestampType(value)
        if form == "duration":
            return celtypes.DurationType(value)
        if form == "byte":
            return celtypes.BytesType(base64.b64decode(value, validate=True))
    except (ValueError, TypeError):
        pass  # the schema's own check of the format reports it
    return celtypes.StringType(value)


def escape(name: str) -> str:
    """Write a property name as rules must: `namespace` is `__namespace__`, `-` is `__dash__`."""
    if name in _RESERVED:
        return f"__{name}__"
    for plain, escaped in (("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__")):
        name = name.replace(plain, escaped)
    return name


def _first_line(error: Exception) -> str:
    text = str(error.args[0]) if error.args else type(error).__name__
    return text.strip().splitlines()[0][:200] if text.strip() else type(error).__name__
