"""Function eks-cluster: not built yet, and it says so."""

from modelplane.labels import INFRASTRUCTURE
from modelplane.xfn import Function, Request, Response


def compose(req: Request, rsp: Response) -> None:
    """Keep whatever is observed, compose nothing and say that this kind is not supported yet."""
    rsp.condition(
        "SpecValid",
        False,
        "NotSupported",
        "EKSCluster is not supported by this version of Modelplane yet.",
        problem=True,
    )
    rsp.ready = False


FUNCTION = Function("eks-cluster", INFRASTRUCTURE, "EKSCluster", ("SpecValid",), compose)
