import copy

import pytest

from modelplane.kube import schema
from modelplane.kube.problem import join

TEXT = {"type": "string"}


def whole(**fields):
    return {"apiVersion": "a/v1", "kind": "A", "metadata": {"name": "a"}, **fields}


NESTED = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {**TEXT, "minLength": 1, "maxLength": 5, "pattern": "^[a-z]+$"},
        "size": {"type": "integer", "minimum": 0, "maximum": 9},
        "mode": {**TEXT, "enum": ["One", "Two"]},
    },
}

VALUES = [
    ("fits", NESTED, {"name": "abc", "size": 9, "mode": "One"}, []),
    ("a whole number read as a float", NESTED, {"name": "abc", "size": 3.0}, []),
    ("required", NESTED, {}, [("v.name", "is required")]),
    ("wrong type", NESTED, {"name": 1}, [("v.name", "must be a string, not a number")]),
    ("a boolean is no integer", NESTED, {"name": "a", "size": True}, [("v.size", "must be an integer, not a boolean")]),
    ("a fraction is no integer", NESTED, {"name": "a", "size": 1.5}, [("v.size", "must be an integer, not a number")]),
    ("null", NESTED, {"name": None}, [("v.name", "must be a string, not null")]),
    ("nullable", {"properties": {"a": {**TEXT, "nullable": True}}}, {"a": None}, []),
    ("unknown", NESTED, {"name": "a", "nam": 1}, [("v.nam", "is not a field; fields here: mode, name, size")]),
    ("low", NESTED, {"name": "a", "size": -1}, [("v.size", "must be at least 0; got -1")]),
    ("high", NESTED, {"name": "a", "size": 10}, [("v.size", "must be at most 9; got 10")]),
    (
        "exclusive bounds",
        {"type": "number", "minimum": 0, "exclusiveMinimum": True},
        0,
        [("v", "must be above 0; got 0")],
    ),
    ("multiple", {"type": "integer", "multipleOf": 8}, 12, [("v", "must be a multiple of 8; got 12")]),
    ("int32", {"type": "integer", "format": "int32"}, 2**31, [("v", "must fit int32; got 2147483648")]),
    ("enum", NESTED, {"name": "a", "mode": "one"}, [("v.mode", 'must be one of "One", "Two"; got "one"')]),
    ("pattern", NESTED, {"name": "A"}, [("v.name", 'must match ^[a-z]+$; got "A"')]),
    ("a pattern's end is no line's end", NESTED, {"name": "a\n"}, [("v.name", 'must match ^[a-z]+$; got "a\\n"')]),
    ("short", NESTED, {"name": ""}, [("v.name", "must be at least 1 characters; it has 0"), ("v.name", "must match")]),
    ("long hides the pattern", NESTED, {"name": "ABCDEF"}, [("v.name", "must be at most 5 characters; it has 6")]),
    (
        "a pattern meets no text without end",
        {**TEXT, "pattern": "^(a+)+$"},
        "a" * 4096 + "b",
        [("v", "must be at most 4096 characters; it has 4097")],
    ),
    ("characters, not bytes", {**TEXT, "maxLength": 2}, "éé", []),
    (
        "items",
        {"type": "array", "items": TEXT, "maxItems": 1},
        ["a", 1],
        [("v", "at most 1 items; it has 2"), ("v[1]", "must be a string")],
    ),
    ("few items", {"type": "array", "items": TEXT, "minItems": 1}, [], [("v", "must have at least 1 items; it has 0")]),
    (
        "map",
        {"type": "object", "additionalProperties": TEXT, "maxProperties": 1, "minProperties": 1},
        {"a/b": 1, "c": "d"},
        [("v", "at most 1 entries"), ("v[a/b]", "must be a string")],
    ),
    (
        "empty map",
        {"type": "object", "additionalProperties": TEXT, "minProperties": 1},
        {},
        [("v", "must have at least 1 entries; it has 0")],
    ),
    (
        "set",
        {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT},
        ["a", "b", "a"],
        [("v[2]", "repeats v[0]")],
    ),
    (
        "map list",
        {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name", "size"],
            "items": {"properties": {"name": TEXT, "size": {"type": "integer", "default": 1}}},
        },
        [{"name": "a"}, {"name": "a", "size": 2}, {"name": "a", "size": 1}],
        [("v[2]", "repeats v[0]; name, size must be unique")],
    ),
    ("anything kept", {"type": "object", "x-kubernetes-preserve-unknown-fields": True}, {"a": [None, 1]}, []),
    (
        "known fields of anything kept",
        {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"a": TEXT}},
        {"a": 1, "b": 1},
        [("v.a", "must be a string")],
    ),
    ("int or string", {"x-kubernetes-int-or-string": True}, "50%", []),
    ("int or string", {"x-kubernetes-int-or-string": True}, 5, []),
    ("neither", {"x-kubernetes-int-or-string": True}, [], [("v", "must be an integer or a string, not an array")]),
    (
        "embedded",
        {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
        {"kind": "A", "metadata": {"name": "A"}, "data": {}},
        [("v.apiVersion", "is required"), ("v.metadata.name", "lower case DNS name")],
    ),
    (
        "one of",
        {"properties": {"a": {}, "b": {}}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {"a": 1, "b": 1},
        [("v", "exactly one of 2")],
    ),
    (
        "any of",
        {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {"c": 1},
        [("v", "at least one of 2"), ("v.c", "is not")],
    ),
    ("all of", {**TEXT, "allOf": [{"minLength": 2}, {"maxLength": 3}]}, "a", [("v", "must be at least 2")]),
    ("not", {**TEXT, "not": {"enum": ["a"]}}, "a", [("v", "must not have this form (not)")]),
    ("time", {**TEXT, "format": "date-time"}, "2024-01-02", [("v", "must be in the format date-time")]),
    ("time", {**TEXT, "format": "date-time"}, "2024-01-02T03:04:05Z", []),
    ("bytes", {**TEXT, "format": "byte"}, "a===", [("v", "must be in the format byte")]),
    ("ipv4", {**TEXT, "format": "ipv4"}, "1.2.3", [("v", "must be in the format ipv4")]),
    ("unknown format", {**TEXT, "format": "password"}, "x", []),
]


@pytest.mark.parametrize("name, rule, value, want", VALUES, ids=[f"{i}-{v[0]}" for i, v in enumerate(VALUES)])
def test_value(name, rule, value, want):
    got = sorted(schema.validate_value(rule, value, "v"))
    assert [p.path for p in got] == [path for path, _ in sorted(want)], got
    for problem, (_, part) in zip(got, sorted(want), strict=True):
        assert part in problem.message


OBJECTS = [
    ("fits", whole(spec="a"), []),
    ("no kind", {"apiVersion": "v1"}, ["kind"]),
    ("not an object", [], ["object"]),
    ("unknown at the root", whole(spce="a"), ["spce"]),
    ("unknown in metadata", {"apiVersion": "v1", "kind": "A", "metadata": {"nmae": "a"}}, ["metadata.nmae"]),
    ("a generated name", {"apiVersion": "v1", "kind": "A", "metadata": {"generateName": "a-"}}, []),
    ("name", {"apiVersion": "v1", "kind": "A", "metadata": {"name": "a_b"}}, ["metadata.name"]),
    ("limit of the schema", {"apiVersion": "v1", "kind": "A", "metadata": {"name": "abcdef"}}, ["metadata.name"]),
    ("namespace", {"apiVersion": "v1", "kind": "A", "metadata": {"namespace": "a.b"}}, ["metadata.namespace"]),
    ("label value", {"apiVersion": "v1", "kind": "A", "metadata": {"labels": {"a": "b c"}}}, ["metadata.labels.a"]),
    (
        "label key",
        {"apiVersion": "v1", "kind": "A", "metadata": {"labels": {"a/b/c": "b"}}},
        ["metadata.labels[a/b/c]"],
    ),
    ("label type", {"apiVersion": "v1", "kind": "A", "metadata": {"labels": {"a": 1}}}, ["metadata.labels.a"]),
    ("annotation", {"apiVersion": "v1", "kind": "A", "metadata": {"annotations": {"A.b/C": "any text"}}}, []),
]


@pytest.mark.parametrize("name, value, want", OBJECTS, ids=[o[0] for o in OBJECTS])
def test_object(name, value, want):
    limits = {"type": "object", "properties": {"name": {**TEXT, "maxLength": 5}}}
    rule = {"type": "object", "properties": {"spec": TEXT, "metadata": limits}}
    assert [p.path for p in schema.validate(rule, value)] == want


DEFAULTS = {
    "properties": {
        "mode": {"type": "string", "default": "One"},
        "http": {
            "type": "object",
            "default": {},
            "properties": {"port": {"type": "integer", "default": 8000}, "path": TEXT},
        },
        "plain": {"type": "object", "properties": {"size": {"type": "integer", "default": 1}}},
        "pools": {"type": "array", "items": {"properties": {"count": {"type": "integer", "default": 1}}}},
        "map": {"type": "object", "additionalProperties": {"properties": {"a": {"type": "integer", "default": 1}}}},
        "maybe": {"type": "string", "nullable": True, "default": "x"},
    }
}
FILLED = {"mode": "One", "http": {"port": 8000}, "maybe": "x"}

DEFAULTED = [
    ("empty", {}, FILLED),
    ("set stays", {"mode": "Two", "http": {"port": 1}}, {**FILLED, "mode": "Two", "http": {"port": 1}}),
    ("only where the parent is", {"plain": {}}, {**FILLED, "plain": {"size": 1}}),
    ("items", {"pools": [{}, {"count": 2}]}, {**FILLED, "pools": [{"count": 1}, {"count": 2}]}),
    ("map entries", {"map": {"k": {}}}, {**FILLED, "map": {"k": {"a": 1}}}),
    ("null gives way", {"mode": None}, FILLED),
    ("an allowed null stays", {"maybe": None}, {**FILLED, "maybe": None}),
    ("false, 0 and '' are values", {"mode": ""}, {**FILLED, "mode": ""}),
    ("unknown stays", {"other": 1}, {**FILLED, "other": 1}),
    ("wrong type stays", {"http": 1}, {**FILLED, "http": 1}),
]


@pytest.mark.parametrize("name, value, want", DEFAULTED, ids=[d[0] for d in DEFAULTED])
def test_defaults(name, value, want):
    before = copy.deepcopy(value)
    assert schema.apply_defaults(DEFAULTS, value) == want
    assert value == before


def test_a_default_is_not_shared_between_objects():
    first = schema.apply_defaults(DEFAULTS, {})
    first["http"]["port"] = 1
    assert schema.apply_defaults(DEFAULTS, {}) == FILLED


PATTERNS = [
    (r"^\d+$", "12", True),
    (r"^\d+$", "١٢", False),
    (r"^a\z", "a\n", False),
    (r"^[a$]+$", "a$", True),
    (r"^[[:alnum:]_]+$", "a_1", True),
    (r"^[[:alnum:]_]+$", "a-1", False),
    (r"^[]a]+$", "]a", True),
    (r"^[^]a]+$", "]", False),
    (r"^[^/]$|^\$$", "$", True),
    (r"b", "abc", True),
]


@pytest.mark.parametrize("pattern, text, want", PATTERNS)
def test_pattern(pattern, text, want):
    assert bool(schema.compile_pattern(pattern).search(text)) is want


def test_a_pattern_python_cannot_read_holds():
    assert schema.compile_pattern(r"\pL(") is None
    assert schema.validate_value({**TEXT, "pattern": r"\pL("}, "a", "v") == []


def test_join():
    assert join(join(join("", "spec"), "a.b/c"), 0) == "spec[a.b/c][0]"
