"""What a stack says of itself: its gateway's address, and what it still waits for."""

from collections.abc import Mapping, Sequence

from modelplane.kube.objects import Resource, objects, text
from modelplane.xfn import Request, Response
from modelplane.xfn.response import TTL_WAITING
from modelplane_functions.serving_stack import access, certificates, gateway
from modelplane_functions.serving_stack.inputs import Stack
from modelplane_functions.serving_stack.stages import Part

COMPONENTS = "ComponentsReady"
GATEWAY = "GatewayReady"

READY = "Ready"
PROVISIONING = "Provisioning"

_LISTED = 5
_IP = "IPAddress"
_TYPES = (_IP, "Hostname")


def write(req: Request, rsp: Response, stack: Stack, wanted: Mapping[str, Part]) -> None:
    """Publish the gateway, set the conditions and the stack's readiness."""
    published, note = _gateway(req, rsp, stack)
    if published:
        rsp.status = {"gateway": published}
    waiting = _waiting(req, wanted)
    if waiting:
        rsp.condition(COMPONENTS, False, PROVISIONING, _waiting_message(req, waiting))
    else:
        rsp.condition(COMPONENTS, True, READY)
    refused = gateway.problem(stack)
    lacks_ca = bool(certificates.asked(stack)) and "caBundle" not in published
    looked = not certificates.asked(stack) or req.answered(certificates.REQUIREMENT)
    up = req.is_ready(gateway.GATEWAY) and "address" in published
    if refused:
        rsp.condition(GATEWAY, False, "InvalidGateway", refused, problem=True)
    elif not up:
        rsp.condition(
            GATEWAY, False, PROVISIONING, " ".join(filter(None, ["Waiting for the gateway's address.", note]))
        )
    elif lacks_ca:
        rsp.condition(GATEWAY, False, PROVISIONING, note, problem=True)
    else:
        rsp.condition(GATEWAY, True, READY, note, problem=bool(note))
    if note:
        rsp.ttl = TTL_WAITING
    rsp.ready = not waiting and up and looked and not refused and not lacks_ca


def _gateway(req: Request, rsp: Response, stack: Stack) -> tuple[dict[str, str], str]:
    """What is published of the gateway: an address that is known once stays until there is another."""
    before = req.xr.status.get("gateway")
    published: dict[str, str] = {}
    address, kind = _address(req.observed.get(gateway.GATEWAY))
    if not address:
        address, kind = text(before, "address"), text(before, "addressType")
    if address:
        published["address"] = address
    if address and kind in _TYPES:
        published["addressType"] = kind
    note = ""
    if certificates.asked(stack):
        certificates.require(rsp, stack)
        bundle, note = certificates.read(req, stack)
        bundle = bundle or text(before, "caBundle")
        if bundle:
            published["caBundle"] = bundle
    return published, note


def _address(found: Resource | None) -> tuple[str, str]:
    """Address and type that the Gateway reports, an IP address rather than a host name."""
    if found is None:
        return "", ""
    reported = [
        (text(raw, "value"), text(raw, "type") or _IP)
        for raw in objects(found.raw, "status", "atProvider", "manifest", "status", "addresses")
        if text(raw, "value")
    ]
    reported.sort(key=lambda a: a[1] != _IP)
    return reported[0] if reported else ("", "")


def _waiting(req: Request, wanted: Mapping[str, Part]) -> list[str]:
    configs = [key for key in (access.KUBERNETES, access.HELM) if key not in req.observed]
    return [*configs, *(key for key in wanted if not req.is_ready(key))]


def _waiting_message(req: Request, waiting: Sequence[str]) -> str:
    listed = ", ".join(waiting[:_LISTED])
    more = f" and {len(waiting) - _LISTED} more" if len(waiting) > _LISTED else ""
    message = f"Waiting for {listed}{more}."
    for key in waiting:
        found = req.observed.get(key)
        synced = found.conditions.get("Synced") if found is not None else None
        if found is not None and synced is not None and synced.status == "False":
            where = f"{found.kind} {found.namespace}/{found.name}"
            return f"{message} {where} cannot be applied; its condition Synced says why."
    return message
