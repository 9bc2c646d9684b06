"""Function serving-stack."""

from modelplane.labels import INFRASTRUCTURE
from modelplane.xfn import Function, Request, Response


def compose(req: Request, rsp: Response) -> None:
    """Compose nothing yet."""


FUNCTION = Function("serving-stack", INFRASTRUCTURE, "ServingStack", (), compose)
