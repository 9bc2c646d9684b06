"""What a reconcile asks Crossplane for: a pure function of what has arrived."""

from modelplane.labels import VERSION
from modelplane.xfn import Request, Response
from modelplane_functions.model_deployment.inputs import CACHE, CLUSTER, CLUSTERS, REPLICAS, SERVICES, Inputs


def require(req: Request, rsp: Response, inputs: Inputs) -> None:
    """Ask for clusters that match, clusters that replicas are on, all replicas, the cache, and services on the way out.

    Clusters of replicas are asked for by name, so that one that does not match any more and one that is gone are
    different facts.
    """
    if inputs.cache is not None:
        rsp.require(CACHE, VERSION, "ModelCache", match_name=inputs.cache.name, namespace=req.xr.namespace)
    for name in sorted({replica.cluster for replica in inputs.own if replica.cluster}):
        rsp.require(CLUSTER + name, VERSION, "InferenceCluster", match_name=name)
    rsp.require(CLUSTERS, VERSION, "InferenceCluster", match_labels=inputs.selector)
    rsp.require(REPLICAS, VERSION, "ModelReplica")
    if any(replica.draining for replica in inputs.own):
        rsp.require(SERVICES, VERSION, "ModelService", namespace=req.xr.namespace)
