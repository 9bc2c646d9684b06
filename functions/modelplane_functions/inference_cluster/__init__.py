"""Function inference-cluster: a cluster that serves models, from wherever it comes.

One flow for every source; `sources` holds what they differ in. `inputs` reads the spec, `occupancy` what runs there,
`pools` judges the node pools, `guards` protects what is in use, `access` reaches the cluster, `children` composes what
makes it and what runs on it, `capacity` counts what is free, `status` says how it all is.
"""

from modelplane.labels import VERSION
from modelplane.xfn import Function, Request, Response
from modelplane_functions.inference_cluster import access, children, guards, inputs, occupancy, pools, status


def compose(req: Request, rsp: Response) -> None:
    """Make the cluster, reach it, install the serving stack and publish what it can run."""
    cluster = inputs.read(req)
    if isinstance(cluster, inputs.Invalid):
        rsp.condition(status.CLUSTER, False, cluster.reason, cluster.message, problem=True)
        rsp.fatal(cluster.message)
        return
    requirements = inputs.require(rsp, cluster)
    replicas = req.views(inputs.REPLICAS, occupancy.replica)
    caches = req.views(inputs.CACHES, occupancy.cache)
    if replicas is None or caches is None or not all(map(req.answered, requirements)):
        status.keep(req, rsp)
        return
    judged = pools.judge(req, cluster, replicas)
    guards.compose(req, rsp, cluster, judged, replicas, caches)
    children.compose_cluster(req, rsp, cluster, judged)
    found = access.read(req, cluster)
    access.compose(req, rsp, cluster, found)
    reachable = access.reachable(req)
    children.compose_stack(req, rsp, cluster, found, reachable=reachable)
    status.write(req, rsp, cluster, judged, replicas, reachable=reachable)


FUNCTION = Function("inference-cluster", VERSION, "InferenceCluster", status.CONDITIONS, compose)
