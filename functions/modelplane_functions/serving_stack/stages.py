"""What is installed, and what waits for what.

A part is composed once everything it comes after is Ready, and ever after while it is observed. A component that is
provided by others counts as Ready.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from modelplane.composed import SUCCESSFUL_CREATE, release, remote_object
from modelplane.kube.objects import Object
from modelplane.labels import RESOURCE
from modelplane.xfn import Request, Response
from modelplane_functions.serving_stack import charts, drivers, extension, gateway, teardown
from modelplane_functions.serving_stack.access import Configs
from modelplane_functions.serving_stack.inputs import GKE, Stack

RELEASE = "Release"
OBJECT = "Object"

_GAIE = tuple(extension.CRDS)


@dataclass(frozen=True)
class Part:
    """One Release or Object.

    `after` are the keys that must be Ready first; `build` answers None while it cannot be built as asked. A part
    without a component is always there; one with `platforms` only there.
    """

    key: str
    kind: str
    component: str
    after: tuple[str, ...]
    policies: teardown.Policies
    build: Callable[[Stack, Configs], Object | None]
    platforms: tuple[str, ...] = ()


def _release(key: str, *after: str) -> Part:
    install = charts.INSTALLS[key]

    def build(stack: Stack, configs: Configs) -> Object:
        chart = install.pinned(stack)
        return release(
            chart,
            configs.helm,
            release_name=f"mp-{chart.name}",
            target_namespace=install.namespace,
            namespace=stack.namespace,
            labels={RESOURCE: key},
            values=install.values(stack),
            wait=install.wait,
            policies=teardown.INSTALLED[stack.teardown],
        )

    return Part(key, RELEASE, install.component, after, teardown.INSTALLED, build)


def _object(
    key: str,
    component: str,
    after: tuple[str, ...],
    policies: teardown.Policies,
    manifest: Callable[[Stack], Object | None],
    readiness: str = SUCCESSFUL_CREATE,
    platforms: tuple[str, ...] = (),
) -> Part:
    def build(stack: Stack, configs: Configs) -> Object | None:
        built = manifest(stack)
        if built is None:
            return None
        return remote_object(
            built,
            configs.kubernetes,
            namespace=stack.namespace,
            labels={RESOURCE: _label(key)},
            policies=policies[stack.teardown],
            readiness=readiness,
        )

    return Part(key, OBJECT, component, after, policies, build, platforms)


def _label(key: str) -> str:
    return key.split(".", 1)[0]


def _constant(build: Callable[[], Object]) -> Callable[[Stack], Object]:
    return lambda _: build()


PARTS: tuple[Part, ...] = (
    _release("cert-manager"),
    _release("prometheus"),
    _release("leader-worker-set"),
    _release("node-feature-discovery"),
    *(
        _object(
            key,
            "inferenceExtension",
            (),
            teardown.SHARED,
            _constant(partial(extension.crd, key)),
            extension.ESTABLISHED,
        )
        for key in _GAIE
    ),
    _release("ai-gateway-crds"),
    _object(gateway.NAMESPACE, "", (), teardown.SHARED, _constant(gateway.namespace)),
    _object(
        drivers.NAMESPACE,
        "nvidiaDraDriver",
        (),
        teardown.INSTALLED,
        _constant(drivers.namespace),
        platforms=(GKE,),
    ),
    _object(
        drivers.QUOTA,
        "nvidiaDraDriver",
        (drivers.NAMESPACE,),
        teardown.INSTALLED,
        _constant(drivers.quota),
        platforms=(GKE,),
    ),
    _release("dra-driver", "node-feature-discovery", drivers.QUOTA),
    # It watches InferencePools from the start.
    _release("envoy-gateway", "ai-gateway-crds", *_GAIE),
    # It looks for the InferencePool definition once, when it starts.
    _release("ai-gateway", "envoy-gateway", "cert-manager", "ai-gateway-crds", *_GAIE),
    _object(gateway.PROXY, "", ("envoy-gateway", gateway.NAMESPACE), teardown.INSTALLED, gateway.proxy),
    _object(gateway.CLASS, "", ("envoy-gateway",), teardown.INSTALLED, gateway.gateway_class, gateway.ACCEPTED),
    # The webhook of AI Gateway must be there before the first proxy pod.
    _object(
        gateway.GATEWAY,
        "",
        (gateway.CLASS, gateway.PROXY, gateway.NAMESPACE, "ai-gateway"),
        teardown.GATEWAY,
        gateway.gateway,
        gateway.ADDRESSED,
    ),
    _object(gateway.SERVICE, "", (gateway.GATEWAY,), teardown.LOAD_BALANCER, _constant(gateway.service)),
)
"""Every part, in the order of its stage."""


def parts(stack: Stack) -> Mapping[str, Part]:
    """The parts that a stack asks for, by key, in the order of their stages."""
    return {
        part.key: part
        for part in PARTS
        if (not part.component or part.component in stack.managed)
        and (not part.platforms or stack.platform in part.platforms)
    }


def compose(req: Request, rsp: Response, stack: Stack, wanted: Mapping[str, Part], configs: Configs) -> None:
    """Compose the parts whose turn it is, and let go of those that the spec stopped asking for."""
    for part in PARTS:
        if part.key not in wanted:
            rsp.drop(part.key)
            continue
        rsp.compose_or_hold(
            part.key,
            partial(part.build, stack, configs),
            gate=configs.usable and all(key not in wanted or req.is_ready(key) for key in part.after),
            ready=req.is_ready(part.key),
        )
