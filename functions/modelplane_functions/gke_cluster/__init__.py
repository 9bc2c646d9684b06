"""Function gke-cluster: not built yet, and it says so."""

from modelplane.labels import INFRASTRUCTURE
from modelplane.xfn import Function, Request, Response


def compose(req: Request, rsp: Response) -> None:
    """Keep whatever is observed, compose nothing and say that this kind is not supported yet."""
    rsp.condition(
        "SpecValid",
        False,
        "NotSupported",
        "GKECluster is not supported by this version of Modelplane yet.",
        problem=True,
    )
    rsp.ready = False


FUNCTION = Function("gke-cluster", INFRASTRUCTURE, "GKECluster", ("SpecValid",), compose)
