"""Structural schemas: validate and default an object the way an API server does.

A schema is the `openAPIV3Schema` of a CustomResourceDefinition, as a dict. Rules in CEL are in `modelplane.kube.rules`.
Source: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/
"""

from __future__ import annotations

import copy
import functools
import ipaddress
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from modelplane.kube import metadata
from modelplane.kube.problem import Problem, join, kind_of, quote

Schema = Mapping[str, Any]

# Python's matcher backtracks where an API server's does not, so no pattern meets a string longer than this.
MAX_PATTERN_INPUT = 4096

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int, float),
    "number": (int, float),
}
_INTEGERS = {"int32": 2**31, "int64": 2**63}
_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)\Z")
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?\Z")
_POSIX_CLASS = {"alnum": "0-9A-Za-z", "alpha": "A-Za-z", "digit": "0-9", "lower": "a-z", "upper": "A-Z", "word": r"\w"}


def validate(schema: Schema, value: object) -> list[Problem]:
    """List what an API server refuses in a whole object, in the order of its fields.

    Unknown fields are problems, as under `fieldValidation: Strict`. Defaults are not applied first: see apply_defaults.
    """
    return list(_resource(schema, value, ""))


def validate_value(schema: Schema, value: object, path: str) -> list[Problem]:
    """List the problems of one value, which is not an object with its own apiVersion, kind and metadata."""
    return list(_value(schema, value, path, strict=True))


def apply_defaults(schema: Schema, value: Any) -> Any:
    """Return a copy of a value with the schema's defaults filled in; the value itself stays as it is.

    A default applies where its parent exists, also one that was itself defaulted, and in place of a null that the
    schema does not allow. Nothing is removed.
    """
    result = copy.deepcopy(value)
    _default(schema, result)
    return result


def _default(schema: Schema, value: object) -> None:
    if isinstance(value, dict):
        for name, child in (schema.get("properties") or {}).items():
            if "default" in child and _absent(child, value, name):
                value[name] = copy.deepcopy(child["default"])
            if name in value:
                _default(child, value[name])
        extra = schema.get("additionalProperties")
        if isinstance(extra, Mapping):
            for key, item in value.items():
                if item is None and "default" in extra and not extra.get("nullable"):
                    value[key] = copy.deepcopy(extra["default"])
                _default(extra, value[key])
    elif isinstance(value, list) and isinstance(schema.get("items"), Mapping):
        for index, item in enumerate(value):
            if item is None and "default" in schema["items"] and not schema["items"].get("nullable"):
                value[index] = copy.deepcopy(schema["items"]["default"])
            _default(schema["items"], value[index])


def _absent(child: Schema, parent: Mapping[str, Any], name: str) -> bool:
    return name not in parent or (parent[name] is None and not child.get("nullable"))


def _resource(schema: Schema, value: object, path: str) -> Iterator[Problem]:
    if not isinstance(value, dict):
        yield Problem(path or "object", f"must be an object, not {kind_of(value)}")
        return
    for field in ("apiVersion", "kind"):
        text = value.get(field)
        if not isinstance(text, str) or not text:
            yield Problem(join(path, field), "is required and must be a string")
    rest = {key: item for key, item in value.items() if key not in ("apiVersion", "kind", "metadata")}
    properties = {
        k: v for k, v in (schema.get("properties") or {}).items() if k not in ("apiVersion", "kind", "metadata")
    }
    required = [k for k in schema.get("required") or () if k not in ("apiVersion", "kind", "metadata")]
    yield from _value({**schema, "type": "object", "properties": properties, "required": required}, rest, path, True)
    if "metadata" in value:
        yield from metadata.validate(value["metadata"], join(path, "metadata"))
        limits = (schema.get("properties") or {}).get("metadata") or {}
        yield from _value(limits, value["metadata"], join(path, "metadata"), strict=False)


def _value(schema: Schema, value: object, path: str, strict: bool) -> Iterator[Problem]:
    """Check one value; strict says whether this schema lists the fields that may exist, as no branch of anyOf does."""
    if value is None:
        if strict and not schema.get("nullable") and _typed(schema):
            yield Problem(path, f"must be {_wanted(schema)}, not null")
        return
    if schema.get("x-kubernetes-int-or-string"):
        if not isinstance(value, (int, str)) or isinstance(value, bool):
            yield Problem(path, f"must be an integer or a string, not {kind_of(value)}")
            return
    elif "type" in schema and not _is_type(schema["type"], value):
        yield Problem(path, f"must be {_wanted(schema)}, not {kind_of(value)}")
        return
    if "enum" in schema and value not in schema["enum"]:
        accepted = ", ".join(json.dumps(item, ensure_ascii=False) for item in schema["enum"])
        yield Problem(path, f"must be one of {accepted}; got {quote(value)}")
    if isinstance(value, str):
        yield from _string(schema, value, path)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield from _number(schema, value, path)
    elif isinstance(value, list):
        yield from _array(schema, value, path, strict)
    elif isinstance(value, dict):
        yield from _object(schema, value, path, strict)
    yield from _branches(schema, value, path)


def _branches(schema: Schema, value: object, path: str) -> Iterator[Problem]:
    for branch in schema.get("allOf") or ():
        yield from _value(branch, value, path, strict=False)
    for word, wanted in (("anyOf", "at least one"), ("oneOf", "exactly one")):
        branches = schema.get(word)
        if not branches:
            continue
        fits = sum(1 for branch in branches if not any(_value(branch, value, path, strict=False)))
        if fits == 0 or (word == "oneOf" and fits > 1):
            yield Problem(path, f"must match {wanted} of {len(branches)} alternatives ({word}); it matches {fits}")
    if "not" in schema and not any(_value(schema["not"], value, path, strict=False)):
        yield Problem(path, "must not have this form (not)")


def _object(schema: Schema, value: dict[str, Any], path: str, strict: bool) -> Iterator[Problem]:
    properties = schema.get("properties") or {}
    extra = schema.get("additionalProperties")
    for name in schema.get("required") or ():
        if name not in value:
            yield Problem(join(path, name), "is required")
    if len(value) > schema.get("maxProperties", len(value)):
        yield Problem(path, f"must have at most {schema['maxProperties']} entries; it has {len(value)}")
    if len(value) < schema.get("minProperties", 0):
        yield Problem(path, f"must have at least {schema['minProperties']} entries; it has {len(value)}")
    if schema.get("x-kubernetes-embedded-resource") and strict:
        bare = {k: v for k, v in schema.items() if k not in ("x-kubernetes-embedded-resource", "required")}
        yield from _resource(bare, value, path)
        return
    keep = schema.get("x-kubernetes-preserve-unknown-fields") or extra is True
    for name, item in value.items():
        where = join(path, name)
        if name in properties:
            yield from _value(properties[name], item, where, strict)
        elif isinstance(extra, Mapping):
            yield from _value(extra, item, where, strict)
        elif strict and not keep:
            known = ", ".join(sorted(properties)[:20]) or "none"
            yield Problem(where, f"is not a field; fields here: {known}")


def _array(schema: Schema, value: list[Any], path: str, strict: bool) -> Iterator[Problem]:
    if len(value) > schema.get("maxItems", len(value)):
        yield Problem(path, f"must have at most {schema['maxItems']} items; it has {len(value)}")
    if len(value) < schema.get("minItems", 0):
        yield Problem(path, f"must have at least {schema['minItems']} items; it has {len(value)}")
    items = schema.get("items")
    if isinstance(items, Mapping):
        for index, item in enumerate(value):
            yield from _value(items, item, join(path, index), strict)
    kind = schema.get("x-kubernetes-list-type")
    if schema.get("uniqueItems") or kind in ("set", "map"):
        keys = list(schema.get("x-kubernetes-list-map-keys") or ()) if kind == "map" else None
        yield from _unique(items if isinstance(items, Mapping) else {}, value, path, keys)


def _unique(items: Schema, value: list[Any], path: str, keys: Sequence[str] | None) -> Iterator[Problem]:
    seen: dict[str, int] = {}
    for index, item in enumerate(value):
        if keys is not None:
            if not isinstance(item, dict):
                continue
            defaults = {k: (items.get("properties") or {}).get(k, {}).get("default") for k in keys}
            identity: object = {k: item.get(k, defaults[k]) for k in keys}
        else:
            identity = item
        mark = json.dumps(identity, sort_keys=True, default=str)
        if mark in seen:
            what = f"repeats {path}[{seen[mark]}]"
            yield Problem(join(path, index), f"{what}; {', '.join(keys)} must be unique" if keys else what)
        else:
            seen[mark] = index


def _string(schema: Schema, value: str, path: str) -> Iterator[Problem]:
    longest = schema.get("maxLength")
    if longest is not None and len(value) > longest:
        yield Problem(path, f"must be at most {longest} characters; it has {len(value)}")
        return
    if len(value) < schema.get("minLength", 0):
        yield Problem(path, f"must be at least {schema['minLength']} characters; it has {len(value)}")
    if "pattern" in schema:
        matcher = compile_pattern(schema["pattern"])
        if len(value) > MAX_PATTERN_INPUT:
            yield Problem(path, f"must be at most {MAX_PATTERN_INPUT} characters; it has {len(value)}")
        elif matcher is not None and not matcher.search(value):
            yield Problem(path, f"must match {schema['pattern']}; got {quote(value)}")
    form = schema.get("format")
    if isinstance(form, str) and not _has_format(form, value):
        yield Problem(path, f"must be in the format {form}; got {quote(value)}")


def _number(schema: Schema, value: float, path: str) -> Iterator[Problem]:
    size = _INTEGERS.get(schema.get("format", ""))
    if size is not None and not -size <= value < size:
        yield Problem(path, f"must fit {schema['format']}; got {quote(value)}")
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and (value < low or (schema.get("exclusiveMinimum") and value == low)):
        yield Problem(path, f"must be {'above' if schema.get('exclusiveMinimum') else 'at least'} {low}; got {value}")
    if high is not None and (value > high or (schema.get("exclusiveMaximum") and value == high)):
        yield Problem(path, f"must be {'below' if schema.get('exclusiveMaximum') else 'at most'} {high}; got {value}")
    step = schema.get("multipleOf")
    if step and value % step:
        yield Problem(path, f"must be a multiple of {step}; got {value}")


def _has_format(form: str, value: str) -> bool:
    """Say whether a string has a format that API servers check; a format they do not know holds always."""
    try:
        if form == "date-time":
            return _TIME.match(value) is not None
        if form == "byte":
            return _BASE64.match(value) is not None
        if form == "ipv4":
            ipaddress.IPv4Address(value)
        elif form == "ipv6":
            ipaddress.IPv6Address(value)
        elif form == "cidr":
            ipaddress.ip_interface(value)
            return "/" in value
    except ValueError:
        return False
    return True


@functools.lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> re.Pattern[str] | None:
    """Translate a pattern in Go's syntax, or return None where Python has no equal."""
    out: list[str] = []
    index, in_class = 0, False
    while index < len(pattern):
        char = pattern[index]
        if char == "\\" and index + 1 < len(pattern):
            pair = pattern[index : index + 2]
            out.append({"\\z": "\\Z"}.get(pair, pair))
            index += 2
            continue
        if in_class:
            name = re.match(r"\[:(\w+):\]", pattern[index:])
            if name and name[1] in _POSIX_CLASS:
                out.append(_POSIX_CLASS[name[1]])
                index += name.end()
                continue
            in_class = char != "]" or pattern[index - 1] == "["
            out.append("\\[" if char == "[" else char)
        else:
            in_class = char == "["
            out.append("\\Z" if char == "$" else char)
        index += 1
    try:
        return re.compile("".join(out), re.ASCII)
    except re.error:
        return None


def _typed(schema: Schema) -> bool:
    return "type" in schema or bool(schema.get("x-kubernetes-int-or-string"))


def _is_type(wanted: str, value: object) -> bool:
    if isinstance(value, bool) and wanted != "boolean":
        return False
    if wanted == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES.get(wanted, (object,)))


def _wanted(schema: Schema) -> str:
    if schema.get("x-kubernetes-int-or-string"):
        return "an integer or a string"
    word = str(schema.get("type"))
    return f"{'an' if word[0] in 'aio' else 'a'} {word}"
