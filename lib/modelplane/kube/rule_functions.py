"""The functions that Kubernetes adds to CEL and that validation rules call.

Source: https://kubernetes.io/docs/reference/using-api/cel/#kubernetes-cel-libraries
"""

from __future__ import annotations

import functools
import ipaddress
import itertools
import operator
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import SplitResult, urlsplit

from celpy import celtypes

from modelplane.kube.quantity import Quantity

Value = Any


class RuleError(ValueError):
    """An argument on which a function has no result; the message says which."""


def _text(value: str) -> celtypes.StringType:
    return celtypes.StringType(value)


def _number(value: int) -> celtypes.IntType:
    return celtypes.IntType(value)


def _is(value: object) -> celtypes.BoolType:
    return celtypes.BoolType(bool(value))


def _answers(parse: Callable[..., Value]) -> Callable[..., celtypes.BoolType]:
    """Turn a parser into the question whether it accepts its argument."""

    def question(*arguments: Value) -> celtypes.BoolType:
        try:
            parse(*arguments)
        except ValueError:
            return _is(False)
        return _is(True)

    return question


def _ip(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    address = ipaddress.ip_address(str(text))
    if isinstance(address, ipaddress.IPv6Address) and (address.ipv4_mapped or address.scope_id):
        raise ValueError(f"{text} is not a plain IP address")
    return address


class Cidr:
    """A CIDR as its text reads: an address, whose host bits may be set, and a prefix length."""

    def __init__(self, text: str) -> None:
        if "/" not in str(text):
            raise ValueError(f"{text} is not a CIDR")
        interface = ipaddress.ip_interface(str(text))
        self.address, self.network = _ip(str(interface.ip)), interface.network

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cidr) and (self.address, self.network) == (other.address, other.network)

    def __hash__(self) -> int:
        return hash((self.address, self.network))


def _contains_ip(cidr: Cidr, ip: Value) -> celtypes.BoolType:
    address = _ip(ip) if isinstance(ip, str) else ip
    return _is(address in cidr.network)


def _contains_cidr(cidr: Cidr, other: Value) -> celtypes.BoolType:
    inner = other if isinstance(other, Cidr) else Cidr(other)
    if inner.network.version != cidr.network.version:
        return _is(False)
    return _is(inner.network.subnet_of(cidr.network))  # type: ignore[arg-type]


def _masked(cidr: Cidr) -> Cidr:
    return Cidr(str(cidr.network))


def _url(text: str) -> SplitResult:
    """Parse an absolute URL or an absolute path, as Go's ParseRequestURI does."""
    split = urlsplit(str(text))
    if not (split.scheme and (split.netloc or split.path)) and not str(text).startswith("/"):
        raise ValueError(f"{text} is not a URL")
    _ = split.port
    return split


def _hostname(url: SplitResult) -> celtypes.StringType:
    host = url.netloc.rpartition("@")[2]
    if host.startswith("["):
        return _text(host[1:].partition("]")[0])
    return _text(host.partition(":")[0])


def _port(url: SplitResult) -> celtypes.StringType:
    return _text("" if url.port is None else str(url.port))


def _quantity(text: str) -> Quantity:
    return Quantity.parse(str(text))


def _whole(quantity: Quantity) -> celtypes.IntType:
    value = quantity.integer
    if value is None:
        raise RuleError("the quantity is not an integer")
    return _number(value)


def _as_quantity(value: Value) -> Quantity:
    return value if isinstance(value, Quantity) else Quantity(int(value))


def _index(values: Value, wanted: Value, *start: int) -> celtypes.IntType:
    if isinstance(values, str):
        return _number(values.find(wanted, *start))
    return _number(next((i for i, value in enumerate(values) if value == wanted), -1))


def _last_index(values: Value, wanted: Value) -> celtypes.IntType:
    if isinstance(values, str):
        return _number(values.rfind(wanted))
    return _number(max((i for i, value in enumerate(values) if value == wanted), default=-1))


def _substring(text: str, start: int, end: int | None = None) -> celtypes.StringType:
    stop = len(text) if end is None else int(end)
    if not 0 <= start <= stop <= len(text):
        raise RuleError(f"index out of range: substring({start}, {stop}) of {len(text)} characters")
    return _text(text[int(start) : stop])


def _char_at(text: str, index: int) -> celtypes.StringType:
    if not 0 <= index <= len(text):
        raise RuleError(f"index out of range: {index} of {len(text)} characters")
    return _text(text[int(index) : int(index) + 1])


def _split(text: str, separator: str, limit: int = -1) -> celtypes.ListType:
    if limit == 0:
        return celtypes.ListType([])
    if not separator:
        parts = list(text) if limit < 0 or len(text) <= limit else [*text[: limit - 1], text[limit - 1 :]]
    else:
        parts = text.split(separator, -1 if limit < 0 else int(limit) - 1)
    return celtypes.ListType([_text(part) for part in parts])


def _replace(text: str, old: str, new: str, limit: int = -1) -> celtypes.StringType:
    return _text(text.replace(old, new, int(limit)))


def _find(text: str, pattern: str) -> celtypes.StringType:
    found = re.search(pattern, text, re.ASCII)
    return _text(found[0] if found else "")


def _find_all(text: str, pattern: str, limit: int = -1) -> celtypes.ListType:
    found = [_text(match[0]) for match in re.finditer(pattern, text, re.ASCII)]
    return celtypes.ListType(found if limit < 0 else found[: int(limit)])


def _is_sorted(values: Value) -> celtypes.BoolType:
    return _is(all(a <= b for a, b in itertools.pairwise(values)))


def _sum(values: Value) -> Value:
    return functools.reduce(operator.add, values) if values else _number(0)


def _extreme(choose: Callable[..., Value]) -> Callable[[Value], Value]:
    def extreme(values: Value) -> Value:
        if not values:
            raise RuleError("index out of range: the list is empty")
        return choose(values)

    return extreme


FUNCTIONS: Mapping[str, Callable[..., Value]] = MappingProxyType(
    {
        "charAt": _char_at,
        "indexOf": _index,
        "join": lambda values, separator="": _text(str(separator).join(values)),
        "lastIndexOf": _last_index,
        "lowerAscii": lambda text: _text("".join(c.lower() if c.isascii() else c for c in text)),
        "replace": _replace,
        "split": _split,
        "substring": _substring,
        "trim": lambda text: _text(text.strip()),
        "upperAscii": lambda text: _text("".join(c.upper() if c.isascii() else c for c in text)),
        "find": _find,
        "findAll": _find_all,
        "isSorted": _is_sorted,
        "sum": _sum,
        "min": _extreme(min),
        "max": _extreme(max),
        "dyn": lambda value: value,
        "ip": lambda value: value.address if isinstance(value, Cidr) else _ip(value),
        "isIP": _answers(_ip),
        "family": lambda address: _number(address.version),
        "isLoopback": lambda address: _is(address.is_loopback),
        "isUnspecified": lambda address: _is(address.is_unspecified),
        "isLinkLocalUnicast": lambda address: _is(address.is_link_local),
        "isGlobalUnicast": lambda a: _is(
            not (a.is_loopback or a.is_unspecified or a.is_link_local or a.is_multicast) and str(a) != "255.255.255.255"
        ),
        "cidr": Cidr,
        "isCIDR": _answers(Cidr),
        "containsIP": _contains_ip,
        "containsCIDR": _contains_cidr,
        "masked": _masked,
        "prefixLength": lambda cidr: _number(cidr.network.prefixlen),
        "url": _url,
        "isURL": _answers(_url),
        "getScheme": lambda url: _text(url.scheme),
        "getHost": lambda url: _text(url.netloc.rpartition("@")[2]),
        "getHostname": _hostname,
        "getPort": _port,
        "getEscapedPath": lambda url: _text(url.path),
        "quantity": _quantity,
        "isQuantity": _answers(_quantity),
        "isInteger": lambda q: _is(q.integer is not None),
        "asInteger": _whole,
        "asApproximateFloat": lambda q: celtypes.DoubleType(q.approximate),
        "sign": lambda q: _number(q.sign),
        "add": lambda q, other: q.add(_as_quantity(other)),
        "sub": lambda q, other: q.subtract(_as_quantity(other)),
        "compareTo": lambda q, other: _number(q.compare(other)),
        "isGreaterThan": lambda q, other: _is(q.compare(other) > 0),
        "isLessThan": lambda q, other: _is(q.compare(other) < 0),
    }
)
"""Functions by name; a method is called with its receiver first."""
