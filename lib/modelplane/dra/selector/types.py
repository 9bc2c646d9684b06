"""Static types of CEL and which can stand for which.

Rules: https://github.com/google/cel-go/blob/v0.26.0/checker/types.go
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Type:
    """A type; `params` are those of list, map and optional. A `param` is a variable named by `name`."""

    kind: str
    name: str
    params: tuple[Type, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.params))})" if self.params else self.name


ERROR = Type("error", "error")
DYN = Type("dyn", "dyn")
ANY = Type("any", "any")
NULL = Type("null", "null")
BOOL = Type("bool", "bool")
INT = Type("int", "int")
UINT = Type("uint", "uint")
DOUBLE = Type("double", "double")
STRING = Type("string", "string")
BYTES = Type("bytes", "bytes")
QUANTITY = Type("struct", "kubernetes.Quantity")
SEMVER = Type("struct", "kubernetes.Semver")
DEVICE = Type("struct", "kubernetes.DRADevice")

_WILD = frozenset(("dyn", "any", "error"))
_NULLABLE = frozenset(("null", "optional", "struct", "any"))
_NESTED = frozenset(("list", "map", "optional"))


def list_of(item: Type) -> Type:
    """list(item)."""
    return Type("list", "list", (item,))


def map_of(key: Type, value: Type) -> Type:
    """map(key, value)."""
    return Type("map", "map", (key, value))


def optional_of(value: Type) -> Type:
    """optional_type(value)."""
    return Type("optional", "optional_type", (value,))


def param(name: str) -> Type:
    """A type variable."""
    return Type("param", name)


def is_dyn(kind: Type) -> bool:
    """Whether the type is only known at run time."""
    return kind.kind in ("dyn", "any")


Substitutions = dict[Type, Type]


def substitute(found: Substitutions, kind: Type, *, free: Type | None = None) -> Type:
    """Replace bound variables, and unbound ones by `free` if given."""
    seen = found.get(kind)
    if seen is not None:
        return substitute(found, seen, free=free)
    if kind.kind == "param":
        return free or kind
    if kind.params:
        return Type(kind.kind, kind.name, tuple(substitute(found, p, free=free) for p in kind.params))
    return kind


def most_general(first: Type, second: Type) -> Type:
    """The more general of two types that unify."""
    return first if _is_less_specific(first, second) else second


def assignable(found: Substitutions, pairs: list[tuple[Type, Type]]) -> Substitutions | None:
    """The substitutions under which each first type can stand for its second, or None."""
    copy = dict(found)
    return copy if all(_assign(copy, first, second) for first, second in pairs) else None


def _assign(found: Substitutions, first: Type, second: Type) -> bool:
    if second.kind == "param":
        valid, bound = _bind(found, first, second)
        if valid or bound:
            return valid
    if first.kind == "param":
        return _bind(found, second, first)[0]
    if first.kind in _WILD or second.kind in _WILD:
        return True
    if first.kind == "null":
        return second.kind in _NULLABLE
    if second.kind == "null":
        return first.kind in _NULLABLE
    if first.kind in _NESTED:
        return first.kind == second.kind and all(
            _assign(found, a, b) for a, b in zip(first.params, second.params, strict=True)
        )
    return first == second


def _bind(found: Substitutions, kind: Type, variable: Type) -> tuple[bool, bool]:
    """Whether the variable can stand for the type, and whether it was bound already."""
    if kind == variable:
        return True, True
    bound = found.get(variable)
    if bound is not None:
        if kind == bound:
            return True, True
        if not _assign(found, kind, bound):
            return False, True
        general = most_general(kind, bound)
        if not _occurs(found, variable, general):
            found[variable] = general
        return True, True
    if _occurs(found, variable, kind):
        return False, False
    found[variable] = kind
    return True, False


def _occurs(found: Substitutions, variable: Type, kind: Type) -> bool:
    if variable == kind:
        return True
    if kind.kind == "param":
        bound = found.get(kind)
        return bound is not None and _occurs(found, variable, bound)
    return any(_occurs(found, variable, p) for p in kind.params)


def _is_less_specific(first: Type, second: Type) -> bool:
    if is_dyn(first) or first.kind == "param":
        return True
    if is_dyn(second) or second.kind == "param":
        return False
    if first.kind != second.kind or first.name != second.name:
        return False
    return all(_is_less_specific(a, b) for a, b in zip(first.params, second.params, strict=True))
