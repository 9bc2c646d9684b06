"""The functions a selector may call, by name: overloads with their types, as every API server since 1.34 declares them.

Rules: https://github.com/google/cel-go/blob/v0.26.0/common/stdlib/standard.go, ext/strings.go (version 2), ext/sets.go,
and https://github.com/kubernetes/apiserver/tree/v0.36.2/pkg/cel/library
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from modelplane.dra.selector.macros import MAP_INSERT
from modelplane.dra.selector.syntax import (
    ADD,
    CONDITIONAL,
    EQUALS,
    IN,
    INDEX,
    NEGATE,
    NOT,
    NOT_EQUALS,
    NOT_STRICTLY_FALSE,
    OPTIONAL_INDEX,
)
from modelplane.dra.selector.types import (
    ANY,
    BOOL,
    BYTES,
    DEVICE,
    DOUBLE,
    DYN,
    INT,
    QUANTITY,
    SEMVER,
    STRING,
    UINT,
    Type,
    list_of,
    map_of,
    optional_of,
    param,
)


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature. The target of a `member` is its first argument."""

    name: str
    args: tuple[Type, ...]
    result: Type
    member: bool = False
    generic: bool = False


DEVICE_FIELDS = {
    "driver": STRING,
    "attributes": map_of(STRING, map_of(STRING, ANY)),
    "capacity": map_of(STRING, map_of(STRING, QUANTITY)),
}
VARIABLES = {"device": DEVICE}

UNSUPPORTED_FIELDS = frozenset(("allowMultipleAllocations",))
UNSUPPORTED_NAMES = frozenset(
    (
        *("int", "uint", "double", "bool", "string", "bytes", "list", "map", "type", "null_type", "dyn"),
        *("optional_type", "kubernetes.Quantity", "kubernetes.Semver"),
    )
)
UNSUPPORTED_FUNCTIONS = frozenset(
    (
        *("type", "bytes", "duration", "timestamp", "getFullYear", "getMonth", "getDate", "getDayOfMonth"),
        *("getDayOfWeek", "getDayOfYear", "getHours", "getMinutes", "getSeconds", "getMilliseconds"),
        *("join", "format", "strings.quote", "transformMapEntry", "includes"),
        *("distinct", "flatten", "slice", "sort", "sortBy", "lists.range"),
        *("url", "isURL", "getScheme", "getHostname", "getHost", "getPort", "getEscapedPath", "getQuery"),
        *("ip", "isIP", "ip.isCanonical", "family", "isUnspecified", "isLoopback", "isLinkLocalMulticast"),
        *("isLinkLocalUnicast", "isGlobalUnicast", "cidr", "isCIDR", "containsIP", "containsCIDR", "masked"),
        *("prefixLength", "format.named", "validate", "optional.unwrap", "unwrapOpt", "optMap", "optFlatMap"),
    )
)

_A, _B = param("A"), param("B")
_LIST, _MAP, _OPTIONAL = list_of(_A), map_of(_A, _B), optional_of(_A)
_STRINGS = list_of(STRING)

FUNCTIONS: dict[str, list[Overload]] = {}


def _declare(
    function: str, name: str, args: Sequence[Type], result: Type, *, member: bool = False, both: bool = False
) -> None:
    generic = any(_has_param(kind) for kind in (*args, result))
    overload = Overload(name, tuple(args), result, member, generic)
    FUNCTIONS.setdefault(function, []).append(overload)
    if both:
        FUNCTIONS[function].append(Overload(name + "_member", tuple(args), result, True, generic))


def _method(function: str, name: str, args: Sequence[Type], result: Type) -> None:
    _declare(function, name, args, result, member=True)


def _has_param(kind: Type) -> bool:
    return kind.kind == "param" or any(map(_has_param, kind.params))


def _operators() -> None:
    _declare(CONDITIONAL, "conditional", (BOOL, _A, _A), _A)
    _declare(NOT, "logical_not", (BOOL,), BOOL)
    _declare(NOT_STRICTLY_FALSE, "not_strictly_false", (BOOL,), BOOL)
    _declare(EQUALS, "equals", (_A, _A), BOOL)
    _declare(NOT_EQUALS, "not_equals", (_A, _A), BOOL)
    _declare(ADD, "add_bytes", (BYTES, BYTES), BYTES)
    _declare(ADD, "add_double", (DOUBLE, DOUBLE), DOUBLE)
    _declare(ADD, "add_int64", (INT, INT), INT)
    _declare(ADD, "add_list", (_LIST, _LIST), _LIST)
    _declare(ADD, "add_string", (STRING, STRING), STRING)
    _declare(ADD, "add_uint64", (UINT, UINT), UINT)
    for function, kinds in (("_-_", (DOUBLE, INT, UINT)), ("_*_", (DOUBLE, INT, UINT)), ("_/_", (DOUBLE, INT, UINT))):
        for kind in kinds:
            _declare(function, f"arithmetic_{kind}", (kind, kind), kind)
    for kind in (INT, UINT):
        _declare("_%_", f"arithmetic_{kind}", (kind, kind), kind)
    for kind in (DOUBLE, INT):
        _declare(NEGATE, f"negate_{kind}", (kind,), kind)
    for function in ("_<_", "_<=_", "_>_", "_>=_"):
        _declare(function, "order", (BOOL, BOOL), BOOL)
        for left in (INT, UINT, DOUBLE):
            for right in (INT, UINT, DOUBLE):
                _declare(function, "order", (left, right), BOOL)
        _declare(function, "order_text", (STRING, STRING), BOOL)
        _declare(function, "order_text", (BYTES, BYTES), BOOL)
    _declare(INDEX, "index_list", (_LIST, INT), _A)
    _declare(INDEX, "index_map", (_MAP, _A), _B)
    _declare(INDEX, "optional_list_index", (optional_of(_LIST), INT), _OPTIONAL)
    _declare(INDEX, "optional_map_index", (optional_of(_MAP), _A), optional_of(_B))
    _declare(OPTIONAL_INDEX, "list_optindex", (_LIST, INT), _OPTIONAL)
    _declare(OPTIONAL_INDEX, "optional_list_optindex", (optional_of(_LIST), INT), _OPTIONAL)
    _declare(OPTIONAL_INDEX, "map_optindex", (_MAP, _A), optional_of(_B))
    _declare(OPTIONAL_INDEX, "optional_map_optindex", (optional_of(_MAP), _A), optional_of(_B))
    _declare(IN, "in_list", (_A, _LIST), BOOL)
    _declare(IN, "in_map", (_A, _MAP), BOOL)
    _declare(MAP_INSERT, "map_insert", (_MAP, _A, _B), _MAP)


def _conversions() -> None:
    for kind in (BYTES, _LIST, _MAP, STRING):
        _declare("size", "size", (kind,), INT, both=True)
    _declare("dyn", "to_dyn", (_A,), DYN)
    for name, kinds in (
        ("bool", (BOOL, STRING)),
        ("double", (DOUBLE, INT, STRING, UINT)),
        ("int", (INT, DOUBLE, STRING, UINT)),
        ("uint", (UINT, DOUBLE, INT, STRING)),
        ("string", (STRING, BOOL, BYTES, DOUBLE, INT, UINT)),
    ):
        result = {"bool": BOOL, "double": DOUBLE, "int": INT, "uint": UINT, "string": STRING}[name]
        for kind in kinds:
            _declare(name, f"{kind}_to_{name}", (kind,), result)


def _strings() -> None:
    _method("contains", "contains_string", (STRING, STRING), BOOL)
    _method("endsWith", "ends_with_string", (STRING, STRING), BOOL)
    _method("startsWith", "starts_with_string", (STRING, STRING), BOOL)
    _declare("matches", "matches", (STRING, STRING), BOOL)
    _method("matches", "matches_string", (STRING, STRING), BOOL)
    _method("charAt", "char_at", (STRING, INT), STRING)
    _method("indexOf", "string_index_of", (STRING, STRING), INT)
    _method("indexOf", "string_index_of_from", (STRING, STRING, INT), INT)
    _method("lastIndexOf", "string_last_index_of", (STRING, STRING), INT)
    _method("lastIndexOf", "string_last_index_of_from", (STRING, STRING, INT), INT)
    _method("lowerAscii", "lower_ascii", (STRING,), STRING)
    _method("upperAscii", "upper_ascii", (STRING,), STRING)
    _method("replace", "replace", (STRING, STRING, STRING), STRING)
    _method("replace", "replace_n", (STRING, STRING, STRING, INT), STRING)
    _method("split", "split", (STRING, STRING), _STRINGS)
    _method("split", "split_n", (STRING, STRING, INT), _STRINGS)
    _method("substring", "substring", (STRING, INT), STRING)
    _method("substring", "substring_range", (STRING, INT, INT), STRING)
    _method("trim", "trim", (STRING,), STRING)
    _method("find", "find", (STRING, STRING), STRING)
    _method("findAll", "find_all", (STRING, STRING), _STRINGS)
    _method("findAll", "find_all_n", (STRING, STRING, INT), _STRINGS)


def _lists() -> None:
    for kind in (INT, UINT, DOUBLE, BOOL, STRING, BYTES):
        _method("isSorted", "is_sorted", (list_of(kind),), BOOL)
        _method("max", "max", (list_of(kind),), kind)
        _method("min", "min", (list_of(kind),), kind)
    for kind in (INT, UINT, DOUBLE):
        _method("sum", f"sum_{kind}", (list_of(kind),), kind)
    _method("indexOf", "list_index_of", (_LIST, _A), INT)
    _method("lastIndexOf", "list_last_index_of", (_LIST, _A), INT)
    for name in ("contains", "equivalent", "intersects"):
        _declare(f"sets.{name}", f"sets_{name}", (_LIST, _LIST), BOOL)


def _optionals() -> None:
    _declare("optional.of", "optional_of", (_A,), _OPTIONAL)
    _declare("optional.ofNonZeroValue", "optional_of_non_zero", (_A,), _OPTIONAL)
    _declare("optional.none", "optional_none", (), _OPTIONAL)
    _method("value", "optional_value", (_OPTIONAL,), _A)
    _method("hasValue", "optional_has_value", (_OPTIONAL,), BOOL)
    _method("or", "optional_or", (_OPTIONAL, _OPTIONAL), _OPTIONAL)
    _method("orValue", "optional_or_value", (_OPTIONAL, _A), _A)


def _quantities_and_versions() -> None:
    for kind, name in ((QUANTITY, "quantity"), (SEMVER, "semver")):
        _declare(name, f"string_to_{name}", (STRING,), kind)
        _declare(f"is{name.title()}", f"is_{name}", (STRING,), BOOL)
        _method("isGreaterThan", "is_greater_than", (kind, kind), BOOL)
        _method("isLessThan", "is_less_than", (kind, kind), BOOL)
        _method("compareTo", "compare_to", (kind, kind), INT)
    _declare("semver", "string_bool_to_semver", (STRING, BOOL), SEMVER)
    _declare("isSemver", "is_semver_bool", (STRING, BOOL), BOOL)
    for part in ("major", "minor", "patch"):
        _method(part, part, (SEMVER,), INT)
    _declare("sign", "sign", (QUANTITY,), INT)
    _method("asApproximateFloat", "as_approximate_float", (QUANTITY,), DOUBLE)
    _method("asInteger", "as_integer", (QUANTITY,), INT)
    _method("isInteger", "is_integer", (QUANTITY,), BOOL)
    for name in ("add", "sub"):
        _method(name, name, (QUANTITY, QUANTITY), QUANTITY)
        _method(name, f"{name}_int", (QUANTITY, INT), QUANTITY)


for _section in (_operators, _conversions, _strings, _lists, _optionals, _quantities_and_versions):
    _section()
