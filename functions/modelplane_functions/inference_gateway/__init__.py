"""Function inference-gateway: the entrance for clients on the control plane.

Gateway API's definitions, Traefik, and a Gateway on it. Each waits for the one before and then stays, whatever becomes
of that.
"""

from collections.abc import Callable

from modelplane.kube.objects import Object
from modelplane.labels import VERSION
from modelplane.xfn import Function, Request, Response
from modelplane.xfn.response import TTL_WAITING
from modelplane_functions.inference_gateway import inputs, resources, status
from modelplane_functions.inference_gateway.inputs import Settings

CONFIG = "provider-config-helm"
API = "gateway-api"
TRAEFIK = "traefik"
METALLB = "metallb"
METALLB_KEYS = ("namespace-metallb", METALLB, "metallb-pool", "metallb-l2", "usage-config-by-metallb")
CLASS = "gateway-class"
GATEWAY = "gateway"
API_DEFINITION = "gateway-api-definition"


def compose(req: Request, rsp: Response) -> None:
    """Compose the gateway in order; a spec that cannot be used changes nothing."""
    gateway = req.observed.get(GATEWAY)
    found = status.addresses(req.xr, gateway)
    rsp.status = {"address": status.first(found), "addresses": found}
    rsp.ready = False
    try:
        settings = inputs.read(req.xr)
    except inputs.InvalidSpec as error:
        rsp.condition("ControllerReady", False, "InvalidSpec", f"{error}. Nothing was changed.", problem=True)
        rsp.keep_condition("Programmed")
        return

    rsp.compose(CONFIG, resources.provider_config(), ready=CONFIG in req.observed)
    if settings.address_pool:
        _compose_metallb(req, rsp, settings)
    else:
        for key in METALLB_KEYS:
            rsp.drop(key)
    api_ready, reason, problem = _compose_api(req, rsp, settings)
    _step(req, rsp, TRAEFIK, lambda: resources.traefik(settings.version), gate=api_ready and CONFIG in req.observed)
    _usage(req, rsp, "usage-config-by-traefik", TRAEFIK, lambda: resources.usage_of_config("traefik"))
    running = req.is_ready(TRAEFIK)
    rsp.compose_or_hold(CLASS, resources.gateway_class, gate=running, ready=_accepted(req))
    rsp.compose_or_hold(GATEWAY, lambda: resources.gateway(settings), gate=running, ready=_programmed(req))
    _usage(req, rsp, "usage-traefik-by-gateway", GATEWAY, resources.usage_of_traefik)

    if running and not problem:
        rsp.condition("ControllerReady", True, "ControllerHealthy", f"Traefik runs, chart {settings.version}.")
    else:
        waiting = problem or f"Waiting for {_waited_for(req, settings)} to become Ready."
        rsp.condition("ControllerReady", False, reason or "Installing", waiting, problem=bool(problem))
    _say_programmed(req, rsp)
    rsp.ready = (
        running
        and not problem
        and _accepted(req)
        and _programmed(req)
        and bool(found)
        and (not settings.managed_api or req.is_ready(API))
        and (not settings.address_pool or req.is_ready(METALLB))
    )
    if problem:
        rsp.ttl = TTL_WAITING


def _step(req: Request, rsp: Response, key: str, build: Callable[[], Object], *, gate: bool) -> None:
    rsp.compose_or_hold(key, build, gate=gate, ready=req.is_ready(key))


def _usage(req: Request, rsp: Response, key: str, used: str, build: Callable[[], Object]) -> None:
    """Guard what exists: a Usage that finds nothing to guard would keep failing."""
    rsp.compose_or_hold(key, build, gate=used in req.observed, ready=key in req.observed)


def _compose_api(req: Request, rsp: Response, settings: Settings) -> tuple[bool, str, str]:
    """Install Gateway API or look at what is there; answers whether it is, and a reason and what is wrong, if anything.

    The definition is asked for only until that is settled.
    """
    if settings.managed_api and API in req.observed:
        _step(req, rsp, API, resources.gateway_api, gate=True)
        return req.is_ready(API), "", ""
    if not settings.managed_api:
        rsp.drop(API)
        if GATEWAY in req.observed:
            return True, "", ""
    rsp.require(API_DEFINITION, "apiextensions.k8s.io/v1", "CustomResourceDefinition", match_name=inputs.CRD)
    if not req.answered(API_DEFINITION):
        return False, "", ""
    definition = req.required_one(API_DEFINITION)
    if settings.managed_api:
        if definition is not None and inputs.foreign_api(definition):
            return (
                False,
                "GatewayAPIConflict",
                "Gateway API is installed already, and not by Helm, so it cannot be taken over; "
                "set spec.gatewayAPI to External to use it as it is.",
            )
        _step(req, rsp, API, resources.gateway_api, gate=CONFIG in req.observed)
        return False, "", ""
    if definition is None:
        return (
            False,
            "GatewayAPIMissing",
            "spec.gatewayAPI is External, but Gateway API is not installed; "
            "install its standard channel, v1.4 or newer, or set spec.gatewayAPI to Managed.",
        )
    version = inputs.api_version(definition)
    if version is None or version < inputs.BUNDLE_MINIMUM:
        said = definition.annotations.get(inputs.BUNDLE_VERSION, "of an unknown version")
        return False, "GatewayAPITooOld", f"The installed Gateway API is {said}; v1.4 or newer is needed."
    return True, "", ""


def _compose_metallb(req: Request, rsp: Response, settings: Settings) -> None:
    namespace, _, pool, l2, usage = METALLB_KEYS
    rsp.compose(namespace, resources.metallb_namespace(), ready=namespace in req.observed)
    _step(req, rsp, METALLB, resources.metallb, gate=CONFIG in req.observed and namespace in req.observed)
    _usage(req, rsp, usage, METALLB, lambda: resources.usage_of_config("metallb"))
    running = req.is_ready(METALLB)
    rsp.compose_or_hold(
        pool, lambda: resources.address_pool(settings.address_pool), gate=running, ready=pool in req.observed
    )
    rsp.compose_or_hold(l2, resources.advertisement, gate=running, ready=l2 in req.observed)


def _accepted(req: Request) -> bool:
    return CLASS in req.observed and status.accepted(req.observed[CLASS])


def _programmed(req: Request) -> bool:
    return GATEWAY in req.observed and status.programmed(req.observed[GATEWAY])


def _waited_for(req: Request, settings: Settings) -> str:
    order = [API] if settings.managed_api else []
    return next((key for key in order if not req.is_ready(key)), TRAEFIK)


def _say_programmed(req: Request, rsp: Response) -> None:
    gateway = req.observed.get(GATEWAY)
    if gateway is None:
        rsp.condition("Programmed", False, "Provisioning", "The Gateway is created once Traefik runs.")
    elif not status.programmed(gateway):
        complaint = status.complaint(gateway)
        rsp.condition(
            "Programmed",
            False,
            "Provisioning",
            f"Waiting for Traefik to take the Gateway{': ' + complaint if complaint else '.'}",
            problem=bool(complaint),
        )
    elif not rsp.status["addresses"]:
        rsp.condition(
            "Programmed",
            False,
            "NoAddress",
            "The Gateway takes routes but has no address: Service traefik in traefik-system has none yet. Where "
            "nothing gives Services of type LoadBalancer an address, set spec.traefik.loadBalancer to MetalLB.",
        )
    else:
        rsp.condition("Programmed", True, "Programmed", f"Clients reach the gateway at {rsp.status['address']}.")


FUNCTION = Function("inference-gateway", VERSION, "InferenceGateway", ("ControllerReady", "Programmed"), compose)
