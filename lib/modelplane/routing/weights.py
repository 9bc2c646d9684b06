"""Weights of backends: shares of a service divided among endpoints in whole numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

MAX = 1_000_000
"""Largest weight of a backendRef.

Source: https://github.com/kubernetes-sigs/gateway-api/blob/v1.5.1/apis/v1/shared_types.go (BackendRef)
"""


def divide(shares: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Divide each (weight, endpoints) share among its endpoints.

    All shares are scaled alike until every endpoint of a positive weight gets at least 1, then each is split into
    quotient and remainder, and all are divided by their greatest common divisor. The sums of the shares keep exactly
    the ratio of the weights, unless a weight would exceed MAX: then all are scaled down, to no less than 1.
    """
    scale = max((-(-count // weight) for weight, count in shares if weight > 0 and count > 0), default=1)
    divided: list[list[int]] = []
    for weight, count in shares:
        if count == 0:
            divided.append([])
            continue
        quotient, remainder = divmod(weight * scale, count)
        divided.append([quotient + (i < remainder) for i in range(count)])
    return _cap(_reduce(divided))


def active_priority(levels: Iterable[tuple[int, int]]) -> int | None:
    """Pick the priority that takes the traffic: the lowest one with an endpoint of positive weight.

    `levels` holds (priority, weight) of each healthy endpoint. Where no weight is positive, the lowest there is; None
    without endpoints.
    """
    known = list(levels)
    positive = [priority for priority, weight in known if weight > 0]
    return min(positive or [priority for priority, _ in known], default=None)


def _reduce(divided: list[list[int]]) -> list[list[int]]:
    divisor = math.gcd(*(w for part in divided for w in part))
    return [[w // divisor for w in part] for part in divided] if divisor > 1 else divided


def _cap(divided: list[list[int]]) -> list[list[int]]:
    largest = max((w for part in divided for w in part), default=0)
    if largest <= MAX:
        return divided
    return [[max(1, (2 * w * MAX + largest) // (2 * largest)) if w else 0 for w in part] for part in divided]
