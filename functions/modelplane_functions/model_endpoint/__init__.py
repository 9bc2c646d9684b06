"""Function model-endpoint: a Service on the control plane that stands for an address.

The gateway's routes know only Services, so an endpoint becomes one without a selector, an EndpointSlice that names the
address, and for https a BackendTLSPolicy.
"""

from modelplane.kube.objects import text
from modelplane.labels import VERSION
from modelplane.routing import urls
from modelplane.xfn import Function, Request, Response
from modelplane.xfn.response import TTL_WAITING
from modelplane_functions.model_endpoint import resources
from modelplane_functions.model_endpoint.inputs import Endpoint, UnsupportedCredentials, read

SERVICE = "service"
TLS_POLICY = "tls-policy"
FAMILIES = ("IPv4", "IPv6", "FQDN")


def compose(req: Request, rsp: Response) -> None:
    """Compose what stands for the endpoint; a spec that cannot be used leaves everything as it was."""
    name = text(req.xr.status, "routing", "backendName")
    rsp.status = {"routing": {"backendName": name or None}}
    rsp.ready = False
    try:
        endpoint = read(req.xr)
    except urls.InvalidURL as error:
        _refuse(req, rsp, "InvalidURL", str(error))
        return
    except UnsupportedCredentials as error:
        _refuse(req, rsp, "CredentialsUnsupported", str(error))
        return

    slice_key = f"endpointslice-{endpoint.url.family.lower()}"
    wanted = [SERVICE, slice_key]
    rsp.compose(SERVICE, resources.service(endpoint), ready=SERVICE in req.observed)
    rsp.compose(slice_key, resources.endpoint_slice(endpoint), ready=slice_key in req.observed)
    for family in FAMILIES:
        if family != endpoint.url.family:
            rsp.drop(f"endpointslice-{family.lower()}")
    reason, problem = "", ""
    if endpoint.url.tls:
        wanted.append(TLS_POLICY)
        reason, problem = _compose_tls_policy(req, rsp, endpoint)
    else:
        rsp.drop(TLS_POLICY)

    missing = [key for key in wanted if key not in req.observed]
    if not missing and not problem:
        rsp.status = {"routing": {"backendName": endpoint.backend}}
        rsp.ready = True
    if endpoint.paused:
        rsp.condition("RoutingReady", False, "Paused", "spec.paused is true: no service sends traffic here.")
    elif problem:
        rsp.condition("RoutingReady", False, reason, problem, problem=True)
    elif missing:
        rsp.condition("RoutingReady", False, "WaitingForBackend", f"Waiting for {', '.join(missing)} to exist.")
    else:
        rsp.condition("RoutingReady", True, "BackendConfigured", f"Service {endpoint.backend} leads to the endpoint.")


def _refuse(req: Request, rsp: Response, reason: str, message: str) -> None:
    kept = " What was set up before stays as it is, and is not used." if SERVICE in req.observed else ""
    rsp.condition("RoutingReady", False, reason, message + kept, problem=True)


def _compose_tls_policy(req: Request, rsp: Response, endpoint: Endpoint) -> tuple[str, str]:
    """Compose the policy once its kind exists on the control plane; answers a reason and what is wrong, if anything."""
    rsp.require("gateway", VERSION, "InferenceGateway", match_name="default")
    gateway = req.required_one("gateway")
    programmed = gateway is not None and isinstance(gateway.status.get("addresses"), list)
    observed = req.observed.get(TLS_POLICY)
    rsp.compose_or_hold(TLS_POLICY, lambda: resources.tls_policy(endpoint), gate=programmed, ready=observed is not None)
    if observed is not None:
        rejection = resources.rejection(observed)
        return ("TLSPolicyRejected", rejection) if rejection else ("", "")
    rsp.ttl = TTL_WAITING
    if programmed or not req.answered("gateway"):
        return "", ""
    state = "is not ready yet" if gateway is not None else "does not exist; create it"
    return "WaitingForGateway", f"spec.url is https, which needs InferenceGateway default; it {state}."


FUNCTION = Function("model-endpoint", VERSION, "ModelEndpoint", ("RoutingReady",), compose)
