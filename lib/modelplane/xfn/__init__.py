"""The function kit: the only room that touches protobuf and the function SDK.

A function is a `Function`: a name, the composite kind it serves, the condition types it owns, and `compose(req, rsp)`.
`Request` reads, `Response` writes. What keeps a fleet safe is done once, here:

- an observed resource that a pass neither composes nor drops stays in desired state as it is (`Response.finish`);
- readiness is always explicit, and False unless a function says otherwise;
- a fatal result carries every condition the function owns;
- whatever a function raises becomes a fatal result, so that Crossplane changes nothing.
"""

from modelplane.xfn.function import Function
from modelplane.xfn.request import Request
from modelplane.xfn.response import Response

__all__ = ["Function", "Request", "Response"]
