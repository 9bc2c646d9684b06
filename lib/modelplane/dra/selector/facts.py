"""Why a selector does not match a device, in a few words, where a comparison of sizes or versions decides."""

from __future__ import annotations

from collections.abc import Iterator

from modelplane.dra.device import Device
from modelplane.dra.selector.reach import ATTRIBUTE, CAPACITY, Aliases, place_of
from modelplane.dra.selector.syntax import AND, EQUALS, NOT_EQUALS, Bind, Call, Literal, Node
from modelplane.kube.quantity import Quantity, QuantityError
from modelplane.kube.semver import Semver, SemverError

_HOLDS = {"<": (-1,), "<=": (-1, 0), ">": (1,), ">=": (0, 1), "==": (0,), "!=": (-1, 1)}
_OPERATORS = {"_<_": "<", "_<=_": "<=", "_>_": ">", "_>=_": ">=", EQUALS: "==", NOT_EQUALS: "!="}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_METHODS = {"isGreaterThan": ">", "isLessThan": "<"}
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "!=": "=="}


def fact(root: Node, device: Device) -> str | None:
    """The first comparison among the terms of `root` that is false on the device, such as "memory 40Gi < 80Gi"."""
    for term, aliases in _terms(root, {}):
        found = _comparison(term)
        if found is None:
            continue
        left, operator, right = found
        place = place_of(left, aliases)
        if place is None or place.depth != 3:
            continue
        domain, name = str(place.domain), str(place.name)
        if place.kind == CAPACITY and isinstance(right, Quantity):
            value: object = device.capacity_by_domain.get(domain, {}).get(name)
        elif place.kind == ATTRIBUTE:
            value = device.attributes_by_domain.get(domain, {}).get(name)
        else:
            continue
        outcome = _compare(value, right)
        if outcome is None:
            continue
        if outcome not in _HOLDS[operator]:
            sign = _OPPOSITE.get(operator) or ("<" if outcome < 0 else ">")
            return f"{name} {value} {sign} {right}"
    return None


def _compare(left: object, right: Quantity | Semver) -> int | None:
    if isinstance(left, Quantity) and isinstance(right, Quantity):
        return left.compare(right)
    if isinstance(left, Semver) and isinstance(right, Semver):
        return left.compare(right)
    return None


def _terms(node: Node, aliases: Aliases) -> Iterator[tuple[Node, Aliases]]:
    if isinstance(node, Call) and node.function == AND:
        for term in node.args:
            yield from _terms(term, aliases)
    elif isinstance(node, Bind):
        yield from _terms(node.body, {**aliases, node.name: place_of(node.value, aliases)})
    else:
        yield node, aliases


def _comparison(node: Node) -> tuple[Node, str, Quantity | Semver] | None:
    if not isinstance(node, Call):
        return None
    if node.target is not None and node.function in _METHODS:
        return _with_constant(node.target, _METHODS[node.function], node.args[0])
    operator = _OPERATORS.get(node.function)
    if operator is None:
        return None
    left, right = node.args
    if _is_zero(left):
        left, right, operator = right, left, _MIRRORED[operator]
    if _is_zero(right) and isinstance(left, Call) and left.function == "compareTo" and left.target is not None:
        return _with_constant(left.target, operator, left.args[0])
    return _with_constant(left, operator, right) if operator == "==" else None


def _is_zero(node: Node) -> bool:
    return isinstance(node, Literal) and type(node.value) is int and node.value == 0


def _with_constant(left: Node, operator: str, right: Node) -> tuple[Node, str, Quantity | Semver] | None:
    if not isinstance(right, Call) or not right.args or not isinstance(right.args[0], Literal):
        return None
    text = right.args[0].value
    if not isinstance(text, str) or len(text) > 64 or len(right.args) > 1:
        return None
    try:
        if right.function == "quantity":
            return left, operator, Quantity.parse(text)
        return (left, operator, Semver.parse(text)) if right.function == "semver" else None
    except (QuantityError, SemverError):
        return None
