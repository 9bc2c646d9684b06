"""The order in which a stack goes.

The gateway goes first, then its load balancer, then what runs them. A provider config stays until everything that is
deleted through it is gone: under foreground deletion Kubernetes removes the provider's own record of its use early.
"""

from collections.abc import Mapping

from modelplane.composed import usage
from modelplane.composed.usage import Used
from modelplane.xfn import Request, Response
from modelplane_functions.serving_stack import access, gateway, teardown
from modelplane_functions.serving_stack.access import Configs
from modelplane_functions.serving_stack.inputs import UNINSTALL, Stack
from modelplane_functions.serving_stack.stages import RELEASE, Part

_CONFIG_PREFIX = "usage-pc-"
_ORDER = {"usage-gateway-service-by-gateway": (gateway.SERVICE, gateway.GATEWAY)}
_ORDER_UNINSTALL = {
    "usage-gateway-class-by-gateway": (gateway.CLASS, gateway.GATEWAY),
    "usage-envoy-gw-by-gateway-class": ("envoy-gateway", gateway.CLASS),
    "usage-envoy-gw-by-gateway-service": ("envoy-gateway", gateway.SERVICE),
}


def compose(req: Request, rsp: Response, stack: Stack, wanted: Mapping[str, Part], configs: Configs) -> None:
    """Compose a Usage once both of its ends exist; let go of those that the spec stopped asking for."""
    pairs = _pairs(stack, wanted)
    for key in (*_ORDER, *_ORDER_UNINSTALL, *(k for k in req.observed if k.startswith(_CONFIG_PREFIX))):
        if key not in pairs:
            rsp.drop(key)
    for key, (of, by) in pairs.items():
        ends = _used(req, of), _used(req, by)
        if ends[0] is not None and ends[1] is not None:
            rsp.compose(key, usage(ends[0], ends[1], namespace=stack.namespace), ready=True)


def _pairs(stack: Stack, wanted: Mapping[str, Part]) -> dict[str, tuple[str, str]]:
    """Keys of the Usages that a stack asks for: what stays, and until what is gone."""
    order = {**_ORDER, **(_ORDER_UNINSTALL if stack.teardown == UNINSTALL else {})}
    pairs = {key: pair for key, pair in order.items() if all(end in wanted for end in pair)}
    for part in wanted.values():
        if teardown.deletes(part.policies[stack.teardown]):
            config = access.HELM if part.kind == RELEASE else access.KUBERNETES
            pairs[_CONFIG_PREFIX + part.key] = (config, part.key)
    return pairs


def _used(req: Request, key: str) -> Used | None:
    found = req.observed.get(key)
    if found is None or not found.name:
        return None
    return Used(found.api_version, found.kind, found.name)
