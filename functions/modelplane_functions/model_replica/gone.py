"""Objects of a cluster that is gone: kept, but let go of, so that nothing waits for what cannot answer."""

from collections.abc import Sequence, Set

from modelplane.composed import ABANDON, FULL, KEEP, OBSERVE
from modelplane.kube.objects import items
from modelplane.xfn import Request, Response
from modelplane.xfn.response import observed_intent

SHARED = ("namespace", "network-policy")


def let_go(req: Request, rsp: Response) -> bool:
    """Keep every observed Object with policy Observe; answers whether all of them carry it already.

    An Object without the Delete policy loses its finalizer without a call to its cluster.
    """
    for key in req.observed:
        _with_policies(req, rsp, key, OBSERVE)
    return all(_lets_go(req, key) for key in req.observed)


def take_back(req: Request, rsp: Response, dropped: Set[str], *, abandon: bool) -> None:
    """Give Objects that are kept as they are their normal policies again, once their cluster is back."""
    for key in req.observed:
        if _lets_go(req, key) and key not in rsp.composed and key not in dropped:
            _with_policies(req, rsp, key, ABANDON if abandon else KEEP if key in SHARED else FULL)


def _lets_go(req: Request, key: str) -> bool:
    return list(items(req.observed[key].spec, "managementPolicies")) == list(OBSERVE)


def _with_policies(req: Request, rsp: Response, key: str, policies: Sequence[str]) -> None:
    intent = observed_intent(req.observed[key])
    if intent is None or "spec" not in intent:
        rsp.hold(key)
        return
    intent["spec"] = {**intent["spec"], "managementPolicies": list(policies)}
    rsp.compose(key, intent, ready=req.observed[key].good)
