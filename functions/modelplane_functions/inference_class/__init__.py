"""Function inference-class."""

from modelplane.labels import VERSION
from modelplane.xfn import Function, Request, Response


def compose(req: Request, rsp: Response) -> None:
    """Compose nothing yet."""


FUNCTION = Function("inference-class", VERSION, "InferenceClass", (), compose)
