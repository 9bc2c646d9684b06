"""Function model-deployment: places replicas on the fleet and keeps them there.

`inputs` reads, `requirements` asks, `modelplane.scheduler` decides, `resources` builds, `withdrawal` lets endpoints go
before their replicas, `status` tells.
"""

from modelplane.labels import VERSION
from modelplane.scheduler import schedule
from modelplane.scheduler.judge import SelectorJudge
from modelplane.xfn import Function, Request, Response
from modelplane_functions.model_deployment import composition, requirements, status
from modelplane_functions.model_deployment.inputs import Inputs


def compose(req: Request, rsp: Response) -> None:
    """Schedule a deployment and compose its replicas and endpoints."""
    inputs = Inputs(req, SelectorJudge())
    decided = schedule(inputs.deployment, inputs.fleet, inputs.judge, now=req.now)
    waiting = requirements.require(req, rsp, inputs, decided)
    composed = composition.compose(req, rsp, inputs, decided)
    status.report(req, rsp, inputs, decided, composed, waiting)


def prepare() -> None:
    """Build the selector parser, which takes as long as a hundred calls."""
    SelectorJudge().judgement("true")


FUNCTION = Function(
    "model-deployment",
    VERSION,
    "ModelDeployment",
    ("ModelCacheResolved", "ReplicasScheduled", "ReplicasReady", "Progressing", "DrainBlocked", "OutOfScope"),
    compose,
    prepare,
)
