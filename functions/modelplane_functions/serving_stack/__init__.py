"""Function serving-stack: what a workload cluster needs to serve models, installed in an order that works.

`inputs` reads the spec; `charts`, `extension`, `drivers` and `gateway` say what is installed; `stages` says what waits
for what and composes it; `teardown` says what deletion leaves behind, `usages` in which order the rest goes;
`status` publishes the gateway's address and, with `certificates`, what it is trusted by.
"""

from modelplane.labels import INFRASTRUCTURE
from modelplane.xfn import Function, Request, Response
from modelplane_functions.serving_stack import access, inputs, stages, status, usages


def compose(req: Request, rsp: Response) -> None:
    """Install what the spec asks for; hold what is there while an input is missing."""
    stack = inputs.read(req.xr)
    if isinstance(stack, inputs.Invalid):
        rsp.condition(status.COMPONENTS, False, "InvalidSpec", stack.message, problem=True)
        rsp.fatal(stack.message)
        return
    configs = access.compose(req, rsp, stack)
    parts = stages.parts(stack)
    stages.compose(req, rsp, stack, parts, configs)
    usages.compose(req, rsp, stack, parts, configs)
    status.write(req, rsp, stack, parts)


FUNCTION = Function("serving-stack", INFRASTRUCTURE, "ServingStack", (status.COMPONENTS, status.GATEWAY), compose)
