"""Provider configs: how the providers reach the workload cluster."""

from dataclasses import dataclass

from modelplane import names
from modelplane.composed import ProviderConfigRef, helm_config, kubernetes_config
from modelplane.xfn import Request, Response
from modelplane_functions.serving_stack.inputs import Stack

KUBERNETES = "provider-config-kubernetes"
HELM = "provider-config-helm"
KIND = "ProviderConfig"


@dataclass(frozen=True)
class Configs:
    """References to both provider configs; `usable` once both exist."""

    kubernetes: ProviderConfigRef
    helm: ProviderConfigRef
    usable: bool


def compose(req: Request, rsp: Response, stack: Stack) -> Configs:
    """Compose both provider configs; they are ready as soon as they exist."""
    refs: dict[str, ProviderConfigRef] = {}
    for key, build in ((KUBERNETES, kubernetes_config), (HELM, helm_config)):
        observed = req.observed.get(key)
        name = (observed.name if observed else "") or names.child(stack.name, "cluster")
        rsp.compose(
            key, build(KIND, name, stack.namespace, stack.kubeconfig, stack.identity), ready=observed is not None
        )
        refs[key] = ProviderConfigRef(name, KIND)
    usable = KUBERNETES in req.observed and HELM in req.observed
    return Configs(refs[KUBERNETES], refs[HELM], usable)
