"""Devices as an InferenceClass lists them and as an InferenceCluster publishes them.

Limits: https://github.com/kubernetes/api/blob/v0.36.2/resource/v1/types.go
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TypeAlias, TypeVar

from modelplane.kube import names, quantity, semver
from modelplane.kube.quantity import Quantity, QuantityError
from modelplane.kube.semver import Semver, SemverError

DRA = "DRA"
SYNTHETIC = "Synthetic"

_COUNT_LIMIT = 64
_ENTRIES_LIMIT = 32
_INT_LIMIT = 9_007_199_254_740_991
_DOMAIN_LIMIT = 63
_TEXT_LIMIT = 64
_CAPACITY_LIMIT = 32
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,31}", re.ASCII)

_DOMAIN = f"a DNS subdomain of at most {_DOMAIN_LIMIT} characters"
_SUBDOMAIN = "a DNS subdomain of at most 253 characters"
_KEY = f"NAME or DOMAIN/NAME: a C identifier of at most 32 characters, after {_DOMAIN}"

V = TypeVar("V")
Attribute: TypeAlias = "str | bool | int | Semver"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with a device: the path of the field, its value, and what is accepted there."""

    path: str
    value: object
    accepted: str

    def __str__(self) -> str:
        shown = "nothing" if self.value is None else repr(self.value)
        return f"{self.path}: {shown if len(shown) <= 80 else shown[:77] + '...'} is not {self.accepted}"


@dataclass(frozen=True, slots=True)
class DeviceError:
    """Why a device cannot be used; at least one problem."""

    problems: tuple[Problem, ...]

    def __str__(self) -> str:
        return "; ".join(map(str, self.problems))


@dataclass(frozen=True)
class Device:
    """One entry of `devices[]`: `count` equal devices on each node.

    `attributes` and `capacity` are keyed by NAME or DOMAIN/NAME; a key without a domain belongs to the driver's.
    """

    name: str
    driver: str
    device_class: str = ""
    claim: str = DRA
    count: int = 1
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    capacity: Mapping[str, Quantity] = field(default_factory=dict)

    @classmethod
    def read(cls, raw: object, path: str) -> Device | DeviceError:
        """A device from its JSON form, or all that is wrong with it; `path` is the field it was found at."""
        return _Reader(path).device(raw)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of all that a selector can read: driver, attributes and capacity."""
        facts = {
            "driver": self.driver,
            "attributes": {key: _fact(value) for key, value in self.attributes.items()},
            "capacity": {key: _fact(value) for key, value in self.capacity.items()},
        }
        text = json.dumps(facts, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @cached_property
    def attributes_by_domain(self) -> Mapping[str, Mapping[str, Attribute]]:
        """The attributes as a selector sees them: by domain, then by name."""
        return _by_domain(self.attributes, self.driver)

    @cached_property
    def capacity_by_domain(self) -> Mapping[str, Mapping[str, Quantity]]:
        """The capacity as a selector sees it: by domain, then by name."""
        return _by_domain(self.capacity, self.driver)

    def __hash__(self) -> int:
        return hash((self.name, self.count, self.fingerprint))


def _by_domain(entries: Mapping[str, V], driver: str) -> Mapping[str, Mapping[str, V]]:
    domains: dict[str, dict[str, V]] = {}
    for key, value in entries.items():
        domain, slash, name = key.partition("/")
        domains.setdefault(domain if slash else driver, {})[name if slash else key] = value
    return domains


def _fact(value: Attribute | Quantity) -> list[object]:
    if isinstance(value, Semver):
        return ["version", str(value)]
    if isinstance(value, Quantity):
        return ["quantity", value.mantissa, value.exponent, value.fixed]
    return [type(value).__name__, value]


class _Reader:
    """Reads one device and collects what is wrong with it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._problems: list[Problem] = []

    def device(self, raw: object) -> Device | DeviceError:
        if not isinstance(raw, Mapping):
            return DeviceError((Problem(self._path, raw, "an object"),))
        claim = self._text(raw, "claim", DRA, lambda text: text in (DRA, SYNTHETIC), f"{DRA} or {SYNTHETIC}")
        wants_class = claim != SYNTHETIC
        device = Device(
            name=self._text(raw, "name", None, lambda text: 0 < len(text) <= 63, "a name of 1 to 63 characters"),
            driver=self._text(raw, "driver", None, _is_domain, _DOMAIN),
            device_class=self._text(
                raw, "deviceClassName", None if wants_class else "", names.is_dns_subdomain, _SUBDOMAIN
            ),
            claim=claim,
            count=self._count(raw),
            attributes=MappingProxyType(self._entries(raw, "attributes", self._attribute)),
            capacity=MappingProxyType(self._entries(raw, "capacity", self._capacity)),
        )
        self._check_unique(device)
        return DeviceError(tuple(self._problems)) if self._problems else device

    def _report(self, field: str, value: object, accepted: str) -> None:
        self._problems.append(Problem(f"{self._path}.{field}", value, accepted))

    def _text(
        self, raw: Mapping[str, object], field: str, default: str | None, valid: Callable[[str], bool], accepted: str
    ) -> str:
        value = raw.get(field)
        if value in (None, "") and default is not None:
            return default
        if not isinstance(value, str) or not valid(value):
            self._report(field, value, accepted)
            return ""
        return value

    def _count(self, raw: Mapping[str, object]) -> int:
        value = raw.get("count")
        if value is None:
            return 1
        count = _whole(value)
        if count is None or not 1 <= count <= _COUNT_LIMIT:
            self._report("count", value, f"a whole number from 1 to {_COUNT_LIMIT}")
            return 1
        return count

    def _entries(self, raw: Mapping[str, object], field: str, read: Callable[[str, object], V | None]) -> dict[str, V]:
        value = raw.get(field)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            self._report(field, value, "an object")
            return {}
        if len(value) > _ENTRIES_LIMIT:
            self._report(field, f"{len(value)} entries", f"at most {_ENTRIES_LIMIT} entries")
            return {}
        found: dict[str, V] = {}
        for key in sorted(value, key=str):
            where = f"{field}[{key}]"
            if not isinstance(key, str) or not _is_key(key):
                self._report(where, key, _KEY)
                continue
            entry = read(where, value[key])
            if entry is not None:
                found[key] = entry
        return found

    def _attribute(self, where: str, raw: object) -> Attribute | None:
        kinds = "exactly one of string, version, bool and int"
        if not isinstance(raw, Mapping):
            self._report(where, raw, f"an object with {kinds}")
            return None
        given = {kind: value for kind, value in raw.items() if value is not None}
        if len(given) != 1:
            self._report(where, ", ".join(sorted(map(str, given))) or None, kinds)
            return None
        kind, value = next(iter(given.items()))
        if kind == "string":
            if isinstance(value, str) and len(value.encode(errors="replace")) <= _TEXT_LIMIT:
                return value
            self._report(f"{where}.string", value, f"a text of at most {_TEXT_LIMIT} bytes")
        elif kind == "version":
            if isinstance(value, str) and len(value) <= _TEXT_LIMIT:
                try:
                    return Semver.parse(value)
                except SemverError:
                    pass
            self._report(f"{where}.version", value, f"{semver.ACCEPTED}, of at most {_TEXT_LIMIT} bytes")
        elif kind == "bool":
            if isinstance(value, bool):
                return value
            self._report(f"{where}.bool", value, "true or false")
        elif kind == "int":
            number = _whole(value)
            if number is not None and abs(number) <= _INT_LIMIT:
                return number
            self._report(f"{where}.int", value, f"a whole number from -{_INT_LIMIT} to {_INT_LIMIT}")
        else:
            self._report(where, kind, kinds)
        return None

    def _capacity(self, where: str, raw: object) -> Quantity | None:
        value = raw.get("value") if isinstance(raw, Mapping) else None
        number = _whole(value)
        text = str(number) if number is not None else value
        if isinstance(text, str) and len(text) <= _CAPACITY_LIMIT:
            try:
                return Quantity.parse(text)
            except QuantityError:
                pass
        self._report(f"{where}.value", value, f"{quantity.ACCEPTED}, of at most {_CAPACITY_LIMIT} characters")
        return None

    def _check_unique(self, device: Device) -> None:
        for where, entries in (("attributes", device.attributes), ("capacity", device.capacity)):
            for key in entries:
                if f"{device.driver}/{key}" in entries:
                    self._report(f"{where}[{key}]", key, f"given once: {device.driver}/{key} is the same key")


def _whole(value: object) -> int | None:
    """A whole number, also when it arrives as a float (the wire format of functions has no integers)."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value if isinstance(value, int) else None


def _is_domain(text: str) -> bool:
    return len(text) <= _DOMAIN_LIMIT and names.is_dns_subdomain(text)


def _is_key(key: str) -> bool:
    domain, slash, name = key.partition("/")
    return _IDENTIFIER.fullmatch(name if slash else key) is not None and (not slash or _is_domain(domain))
