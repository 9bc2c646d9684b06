"""Function inference-class: says whether an InferenceClass can be used. It composes nothing."""

from modelplane.labels import VERSION
from modelplane.xfn import Function, Request, Response
from modelplane_functions.inference_class import devices, provisioning

ACCEPTED = "Accepted"


def compose(req: Request, rsp: Response) -> None:
    """Judge the devices and the provisioning block, and say what to change."""
    spec = req.xr.spec
    found, problems = devices.read(spec)
    refused = provisioning.check(spec)
    if found:
        rsp.status = {"devices": devices.summary(found)}
    if problems:
        rsp.condition(ACCEPTED, False, "InvalidDevices", "; ".join(problems), problem=True)
    elif refused:
        rsp.condition(ACCEPTED, False, "InvalidProvisioning", "; ".join(refused), problem=True)
    else:
        notes = [*provisioning.count_mismatch(spec, found), *devices.notes(found)]
        rsp.condition(ACCEPTED, True, "Available", " ".join(notes), problem=bool(notes))
    rsp.ready = not problems and not refused


FUNCTION = Function("inference-class", VERSION, "InferenceClass", (ACCEPTED,), compose)
