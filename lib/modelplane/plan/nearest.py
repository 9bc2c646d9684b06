"""The nearest miss: which hardware almost had what a selector asks for, and how much is missing."""

import re
from collections.abc import Iterable

from modelplane.kube.objects import Object, mapping, objects, text
from modelplane.kube.quantity import Quantity, QuantityError

SHOWN = 3

_AT_LEAST = re.compile(
    r"""^\s*device\.capacity\[\s*["']([^"']+)["']\s*\]\s*(?:\.(\w+)|\[\s*["'](\w+)["']\s*\])
        \.(?:compareTo\(\s*quantity\(\s*["']([^"']+)["']\s*\)\s*\)\s*>=\s*0
        |isGreaterThan\(\s*quantity\(\s*["']([^"']+)["']\s*\)\s*\))\s*$""",
    re.VERBOSE,
)


def misses(deployment: Object, clusters: Iterable[Object]) -> tuple[str, ...]:
    """Say for each capacity a deployment asks for and no pool has, which pools come closest.

    Only terms that compare one capacity with a constant are understood; the scheduler's own reasons cover the rest.
    """
    published = [
        (text(cluster, "metadata", "name"), text(pool, "name"), device)
        for cluster in clusters
        for pool in objects(cluster, "status", "gpuPools")
        for device in objects(pool, "devices")
    ]
    found: list[str] = []
    for driver, key, want in _bounds(deployment):
        have = [
            (amount, f"pool {pool} of {cluster}")
            for cluster, pool, device in published
            if (text(device, "driver") or driver) == driver and (amount := _amount(device, key)) is not None
        ]
        if not have or any(amount >= want for amount, _ in have):
            continue
        best = max(amount for amount, _ in have)
        places = sorted({place for amount, place in have if amount == best})
        more = f" and {len(places) - SHOWN} more" if len(places) > SHOWN else ""
        message = f"needs {key} >= {want.text}; {', '.join(places[:SHOWN])}{more} has {best.text}: "
        message += f"{_short(want, best)} short"
        if message not in found:
            found.append(message)
    return tuple(found)


def _bounds(deployment: Object) -> list[tuple[str, str, Quantity]]:
    found = []
    for engine in objects(deployment, "spec", "template", "spec", "engines"):
        for member in objects(engine, "members"):
            for device in objects(member, "nodeSelector", "devices"):
                for selector in objects(device, "selectors"):
                    found += _terms(text(selector, "cel"))
    return found


def _terms(expression: str) -> list[tuple[str, str, Quantity]]:
    found = []
    for term in expression.split("&&"):
        match = _AT_LEAST.match(term)
        if match is None:
            continue
        try:
            found.append((match[1], match[2] or match[3], Quantity.parse(match[4] or match[5])))
        except QuantityError:
            continue
    return found


def _amount(device: object, key: str) -> Quantity | None:
    try:
        return Quantity.parse(text(mapping(device, "capacity"), key, "value"))
    except QuantityError:
        return None


def _short(want: Quantity, have: Quantity) -> str:
    """The difference in the largest binary unit that holds it exactly, else as a plain number."""
    missing = want.subtract(have).integer
    if missing is None:
        return str(want.subtract(have))
    for shift, suffix in ((40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki")):
        if missing and missing % (1 << shift) == 0:
            return f"{missing >> shift}{suffix}"
    return str(missing)
