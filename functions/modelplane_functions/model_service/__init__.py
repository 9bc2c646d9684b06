"""Function model-service."""

from modelplane.labels import VERSION
from modelplane.xfn import Function, Request, Response


def compose(req: Request, rsp: Response) -> None:
    """Compose nothing yet."""


FUNCTION = Function("model-service", VERSION, "ModelService", (), compose)
