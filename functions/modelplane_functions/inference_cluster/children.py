"""The XRs below an InferenceCluster: the one that makes the cluster, and the serving stack."""

from collections.abc import Sequence

from modelplane.composed import usage
from modelplane.composed.usage import Used
from modelplane.kube.objects import Object, dig, objects
from modelplane.labels import FOREGROUND, INFRASTRUCTURE, SYSTEM_NAMESPACE
from modelplane.xfn import Request, Response
from modelplane_functions.inference_cluster.access import Access
from modelplane_functions.inference_cluster.inputs import STACK, Cluster, name_of, stack_name
from modelplane_functions.inference_cluster.pools import Pool, entries


def compose_cluster(req: Request, rsp: Response, cluster: Cluster, pools: Sequence[Pool]) -> None:
    """Compose the XR that makes the cluster, once a pool can be made."""
    child = cluster.source.child
    if child is None:
        return
    kept = [dict(pool.entry) for pool in pools if pool.kept and pool.entry is not None]
    # Pools that cannot be read cannot be kept one by one: the whole XR stays as it is.
    if entries(req.observed.get(child.key)) is None or not kept:
        return
    spec: Object = {field: cluster.block[field] for field in child.fields if cluster.block.get(field) is not None}
    spec["nodePools"] = kept
    rsp.compose(
        child.key,
        _xr(child.kind, name_of(req, child.key, cluster.name), spec),
        ready=req.is_ready(child.key),
    )


def compose_stack(req: Request, rsp: Response, cluster: Cluster, access: Access | None, *, reachable: bool) -> None:
    """Compose the serving stack once the cluster answers, and the order in which both go."""

    def build() -> Object | None:
        secrets = access.secrets() if access is not None else _last_secrets(req)
        if not secrets:
            return None
        spec: Object = {"secrets": secrets, "platform": cluster.source.name, "teardown": cluster.teardown}
        if cluster.source.driver_root != "/":
            spec["nvidiaDriverRoot"] = cluster.source.driver_root
        for field in ("components", "gateway"):
            if cluster.spec.get(field) is not None:
                spec[field] = cluster.spec[field]
        return _xr("ServingStack", stack_name(req, cluster), spec)

    wanted = rsp.compose_or_hold(STACK, build, gate=access is not None and reachable, ready=req.is_ready(STACK))
    child = cluster.source.child
    if child is not None and wanted:
        guard = usage(
            Used(INFRASTRUCTURE, child.kind, name_of(req, child.key, cluster.name)),
            Used(INFRASTRUCTURE, "ServingStack", stack_name(req, cluster)),
            namespace=SYSTEM_NAMESPACE,
        )
        rsp.compose(child.usage, guard, ready=True)


def _last_secrets(req: Request) -> list[Object]:
    """Secrets that the serving stack already has, so that a missing status of the child changes nothing in it."""
    stack = req.observed.get(STACK)
    listed = dig(stack.raw, "spec", "secrets") if stack is not None else None
    found = [dict(secret) for secret in objects(listed)]
    return found if found and len(found) == len(listed or ()) else []


def _xr(kind: str, name: str, spec: Object) -> Object:
    """Build an XR that the garbage collector deletes in the foreground, however its owner is deleted."""
    return {
        "apiVersion": INFRASTRUCTURE,
        "kind": kind,
        "metadata": {"name": name, "namespace": SYSTEM_NAMESPACE, "finalizers": [FOREGROUND]},
        "spec": spec,
    }
