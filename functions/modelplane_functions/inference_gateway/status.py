"""What the gateway says of itself."""

from __future__ import annotations

from collections.abc import Sequence

from modelplane.kube.objects import Object, Resource, integer, objects, text

ADDRESSES = 16


def addresses(xr: Resource, gateway: Resource | None) -> list[Object] | None:
    """Addresses of the observed Gateway.

    An empty list once it is programmed without one, which tells services that it takes routes; None before. Addresses
    that were published stay while the Gateway has none.
    """
    found = [
        {"type": text(a, "type") or "IPAddress", "value": text(a, "value")}
        for a in objects(gateway.status if gateway else {}, "addresses")
        if text(a, "value") and text(a, "type") in ("", "IPAddress", "Hostname")
    ][:ADDRESSES]
    published = xr.status.get("addresses")
    if found:
        return found
    if isinstance(published, list):
        return [dict(a) for a in objects(xr.status, "addresses")]
    return [] if gateway is not None and programmed(gateway) else None


def first(found: Sequence[Object] | None) -> str | None:
    """The address that clients are told: an IP address before a host name."""
    ranked = sorted(found or (), key=lambda a: a["type"] != "IPAddress")
    return str(ranked[0]["value"]) if ranked else None


def programmed(gateway: Resource) -> bool:
    """Whether the observed Gateway is programmed as it is now."""
    return _is_true(gateway, "Programmed")


def accepted(gateway_class: Resource) -> bool:
    """Whether the observed GatewayClass is accepted as it is now."""
    return _is_true(gateway_class, "Accepted")


def _is_true(resource: Resource, type_: str) -> bool:
    for condition in objects(resource.status, "conditions"):
        if text(condition, "type") == type_:
            seen = integer(condition, "observedGeneration")
            return text(condition, "status") == "True" and (seen is None or seen >= resource.generation)
    return False


def complaint(gateway: Resource) -> str:
    """What keeps the observed Gateway from being programmed, in its own words and its listeners'."""
    said = [*objects(gateway.status, "conditions")]
    for listener in objects(gateway.status, "listeners"):
        said.extend(objects(listener, "conditions"))
    found = [text(c, "message") or text(c, "reason") for c in said if text(c, "status") == "False"]
    return "; ".join(dict.fromkeys(m for m in found if m))
