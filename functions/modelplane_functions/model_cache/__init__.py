"""Function model-cache: not built yet, and it says so."""

from modelplane.labels import VERSION
from modelplane.xfn import Function, Request, Response


def compose(req: Request, rsp: Response) -> None:
    """Keep whatever is observed, compose nothing and say that this kind is not supported yet."""
    rsp.condition(
        "ArtifactReady",
        False,
        "NotSupported",
        "ModelCache is not supported by this version of Modelplane yet.",
        problem=True,
    )
    rsp.ready = False


FUNCTION = Function("model-cache", VERSION, "ModelCache", ("ArtifactReady",), compose)
