"""Fitting one pod to one empty node: which devices each of its requests gets.

A request takes `count` units of one device class, possibly of several entries of it. The search is exact: classes are
chosen by backtracking, units by augmenting paths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from modelplane.dra.device import SYNTHETIC, Device
from modelplane.scheduler.types import DeviceRequest, Member, Reason, Request, Shape, Vector

SEARCH_LIMIT = 10_000
CLAIM_LIMIT = 32
"""Devices in one claim (AllocationResultsMaxSize of resource.k8s.io/v1)."""

EFA = "EFA"
EFA_DRIVER = "efa.networking.k8s.aws"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a selector matches a device, or the error that evaluating it ended in."""

    match: bool
    error: str = ""


class OutOfBudget(Exception):  # noqa: N818
    """The selectors of a deployment cost more than one reconcile may spend."""


class Judge(Protocol):
    """Evaluates selectors."""

    def verdict(self, selector: str, device: Device) -> Verdict:
        """Evaluate a selector on a device; raises OutOfBudget."""
        ...

    def nearest(self, selector: str, device: Device) -> str:
        """Say in a few words what about a device the selector refuses, such as `memory 81559Mi < 100Gi`."""
        ...


@dataclass(frozen=True, slots=True)
class Fit:
    """What a pod gets. `usage` is in units; `matched` is the device each request got first, None for Synthetic."""

    requests: tuple[DeviceRequest, ...]
    usage: Vector
    matched: tuple[Device | None, ...]


Distance = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Misfit:
    """Why a pod fits no node of a shape.

    `distance` tells which of several came nearest, the smallest first: requests that no device matches, selectors left
    unmet by the nearest device, and how small it is.
    """

    reason: Reason
    message: str
    distance: Distance = ()


class Matcher:
    """Fits members to shapes, each pair once."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._fits: dict[tuple[Member, Shape, bool], Fit | Misfit] = {}

    def fit(self, member: Member, shape: Shape, *, fabric: bool = False) -> Fit | Misfit:
        """Fit a pod; with `fabric` it also claims the EFA interfaces of its node, unless it asks for them itself."""
        key = (member, shape, fabric)
        found = self._fits.get(key)
        if found is None:
            found = self._fits[key] = self._fit(member, shape, fabric)
        return found

    def _fit(self, member: Member, shape: Shape, fabric: bool) -> Fit | Misfit:
        options: list[dict[str, list[Device]]] = []
        missing: list[tuple[Request, str]] = []
        errors: list[str] = []
        for request in member.requests:
            by_class, error = self._options(request, shape)
            options.append(by_class)
            if not by_class:
                if error:
                    errors.append(error)
                missing.append((request, error))
        if errors:
            return Misfit(Reason.SELECTOR_ERROR, errors[0], (len(missing),))
        if missing:
            fact, distance = self._nearest(missing[0][0], shape)
            return Misfit(Reason.NO_MATCHING_DEVICE, fact, (len(missing), *distance))
        try:
            chosen = _assign(member.requests, options)
        except _TooComplex:
            return Misfit(Reason.TOO_COMPLEX, f"its requests leave too many choices (over {SEARCH_LIMIT})")
        if chosen is None:
            return Misfit(Reason.NO_MATCHING_DEVICE, "its requests compete for the same devices of a node")
        return _claim(member, shape, chosen, fabric)

    def _options(self, request: Request, shape: Shape) -> tuple[dict[str, list[Device]], str]:
        """Matching entries by class, of classes with enough units; a class with an entry that errs is closed.

        The error is told only where every class is closed: a selector meant for a GPU may well err on a network card.
        """
        groups: set[str] = set()
        found: dict[str, list[Device]] = {}
        closed: dict[str, str] = {}
        for device in shape.devices:
            group = _group(device)
            groups.add(group)
            for selector in request.selectors:
                verdict = self._judge.verdict(selector, device)
                if verdict.error:
                    closed.setdefault(group, f"request {request.name} on device {device.name}: {verdict.error}")
                if not verdict.match:
                    break
            else:
                found.setdefault(group, []).append(device)
        enough = {
            group: devices
            for group, devices in found.items()
            if group not in closed and sum(d.count for d in devices) >= request.count
        }
        return enough, next(iter(closed.values()), "") if groups == closed.keys() else ""

    def _nearest(self, request: Request, shape: Shape) -> tuple[str, Distance]:
        """A fact about the device that comes nearest to a request, and how near that is."""
        found: list[tuple[Distance, str]] = []
        for device in shape.devices:
            unmet = [s for s in request.selectors if not self._judge.verdict(s, device).match]
            size = sum(quantity.approximate for quantity in device.capacity.values())
            if not unmet:
                fact = f"needs {request.count}, a node has {device.count}"
                found.append(((0, -device.count, -size), f"request {request.name} {fact}"))
            else:
                fact = self._judge.nearest(unmet[0], device) or f"device {device.name} does not match"
                found.append(((len(unmet), 0, -size), f"request {request.name}: {fact}"))
        if not found:
            return f"request {request.name}: the pool has no devices", (len(request.selectors) + 1,)
        distance, fact = min(found, key=lambda item: item[0])
        return fact, distance


def _group(device: Device) -> str:
    return f"synthetic/{device.name}" if device.claim == SYNTHETIC else device.device_class


Flow = dict[int, dict[str, int]]
"""Units of each entry by request."""

Chosen = list[tuple[str, list[tuple[Device, int]]]]
"""For each request its class and the units it gets of each entry."""


class _TooComplex(Exception):  # noqa: N818
    pass


def _assign(requests: Sequence[Request], options: Sequence[dict[str, list[Device]]]) -> Chosen | None:
    """Choose a class for each request, those with the fewest options first, and units within each class."""
    order = sorted(range(len(requests)), key=lambda at: (len(options[at]), at))
    steps = 0

    def choose(depth: int, classes: dict[int, str], flows: dict[str, Flow]) -> dict[int, dict[str, int]] | None:
        nonlocal steps
        steps += 1
        if steps > SEARCH_LIMIT:
            raise _TooComplex
        if depth == len(order):
            merged: dict[int, dict[str, int]] = {}
            for given in flows.values():
                merged.update(given)
            return merged
        at = order[depth]
        for group in options[at]:
            members = [other for other in order[:depth] if classes[other] == group] + [at]
            flow = assign_units({m: requests[m].count for m in members}, {m: options[m][group] for m in members})
            if flow is None:
                continue
            deeper = choose(depth + 1, {**classes, at: group}, {**flows, group: flow})
            if deeper is not None:
                return deeper
        return None

    units = choose(0, {}, {})
    if units is None:
        return None
    chosen: Chosen = []
    for at in range(len(requests)):
        mine = units[at]
        group = next(g for g, devices in options[at].items() if set(mine) <= {d.name for d in devices})
        chosen.append((group, [(device, mine[device.name]) for device in options[at][group] if device.name in mine]))
    return chosen


def assign_units(counts: dict[int, int], entries: dict[int, list[Device]]) -> Flow | None:
    """Give every request its count from the entries it matches; None where they do not suffice.

    Entries that the fewest requests match are used first, so that general devices stay free.
    """
    free = {device.name: device.count for devices in entries.values() for device in devices}
    if sum(counts.values()) > sum(free.values()):
        return None
    wanted_by = {name: sum(any(d.name == name for d in devices) for devices in entries.values()) for name in free}
    flow: Flow = {request: {} for request in counts}
    choices = {
        request: [d.name for d in sorted(devices, key=lambda d: wanted_by[d.name])]
        for request, devices in entries.items()
    }
    for request in sorted(counts):
        for _ in range(counts[request]):
            if not _augment(request, choices, flow, free, set()):
                return None
    return flow


def _augment(request: int, choices: dict[int, list[str]], flow: Flow, free: dict[str, int], visited: set[str]) -> bool:
    """Give a request one more unit, moving units of other requests where that is needed."""
    for name in choices[request]:
        if free[name] > 0:
            free[name] -= 1
            flow[request][name] = flow[request].get(name, 0) + 1
            return True
    for name in choices[request]:
        if name in visited:
            continue
        visited.add(name)
        for other, units in flow.items():
            if other != request and units.get(name) and _augment(other, choices, flow, free, visited):
                units[name] -= 1
                if not units[name]:
                    del units[name]
                flow[request][name] = flow[request].get(name, 0) + 1
                return True
    return False


def _claim(member: Member, shape: Shape, chosen: Chosen, fabric: bool) -> Fit | Misfit:
    claims: list[DeviceRequest] = []
    matched: list[Device | None] = []
    units = [0] * len(shape.capacity)
    for request, (group, taken) in zip(member.requests, chosen, strict=True):
        if group.startswith("synthetic/"):
            matched.append(None)
            continue
        matched.append(taken[0][0])
        for device, count in taken:
            units[shape.positions[device.name]] += count
        claims.append(DeviceRequest(request.name, group, request.count, request.claim_selectors))
    total = sum(claim.count for claim in claims)
    if total > CLAIM_LIMIT:
        return Misfit(Reason.NO_MATCHING_DEVICE, f"a pod asks for {total} devices; a claim holds at most {CLAIM_LIMIT}")
    if fabric and claims:
        for device in shape.devices:
            if device.driver != EFA_DRIVER or device.claim == SYNTHETIC or units[shape.positions[device.name]]:
                continue
            count = min(device.count, CLAIM_LIMIT - total)
            if count:
                taken_names = {claim.name for claim in claims}
                name = "fabric" if "fabric" not in taken_names else "fabric-efa"
                claims.append(DeviceRequest(name, device.device_class, count))
                units[shape.positions[device.name]] += count
            break
    return Fit(tuple(claims), tuple(units), tuple(matched))
