"""The eleven functions by name: the one place that knows them all."""

import importlib
from collections.abc import Callable
from functools import partial

from modelplane.labels import INFRASTRUCTURE, VERSION
from modelplane.xfn.function import Function

NAMES: dict[str, tuple[str, str]] = {
    "inference-class": (VERSION, "InferenceClass"),
    "inference-cluster": (VERSION, "InferenceCluster"),
    "inference-gateway": (VERSION, "InferenceGateway"),
    "model-deployment": (VERSION, "ModelDeployment"),
    "model-replica": (VERSION, "ModelReplica"),
    "model-service": (VERSION, "ModelService"),
    "model-endpoint": (VERSION, "ModelEndpoint"),
    "model-cache": (VERSION, "ModelCache"),
    "eks-cluster": (INFRASTRUCTURE, "EKSCluster"),
    "gke-cluster": (INFRASTRUCTURE, "GKECluster"),
    "serving-stack": (INFRASTRUCTURE, "ServingStack"),
}
"""apiVersion and kind of the composite that each function serves."""


def load(name: str) -> Function:
    """Import one function; no other is imported."""
    module = importlib.import_module("modelplane_functions." + name.replace("-", "_"))
    function: Function = module.FUNCTION
    return function


def loaders(name: str) -> dict[str, Callable[[], Function]]:
    """Loaders by composite kind for one function, or for `all`.

    Raises KeyError for a name that is not in the catalog.
    """
    names = list(NAMES) if name == "all" else [name]
    return {NAMES[n][1]: partial(load, n) for n in names}
