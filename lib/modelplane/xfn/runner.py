"""Run functions: one call in, one answer out."""

import logging
import time
from collections.abc import Callable, Mapping

from crossplane.function.proto.v1 import run_function_pb2 as fnv1

from modelplane.xfn.function import Function
from modelplane.xfn.request import Request
from modelplane.xfn.response import Response

log = logging.getLogger(__name__)


class Runner:
    """Answers calls for one function, or for several by the kind of the composite.

    `functions` maps kinds to loaders, so that a process that serves one function imports no other.
    """

    def __init__(self, functions: Mapping[str, Callable[[], Function]], now: Callable[[], float] = time.time) -> None:
        self._loaders = dict(functions)
        self._loaded: dict[str, Function] = {}
        self._now = now

    def preload(self) -> None:
        """Import and prepare every function now rather than at its first call."""
        for kind in self._loaders:
            function = self._load(kind)
            if function is not None:
                function.prepare()

    def _load(self, kind: str) -> Function | None:
        if kind not in self._loaded:
            if kind not in self._loaders:
                return None
            self._loaded[kind] = self._loaders[kind]()
        return self._loaded[kind]

    def answer(self, payload: bytes) -> bytes:
        """Answer one encoded call; equal calls get equal bytes.

        Raises DecodeError where the payload is no request. Whatever else goes wrong is a fatal result, which makes
        Crossplane change nothing.
        """
        return bytes(self._run(Request(payload, self._now)).SerializeToString(deterministic=True))

    def run(self, message: fnv1.RunFunctionRequest) -> fnv1.RunFunctionResponse:
        """Answer one call as `answer` does."""
        return fnv1.RunFunctionResponse.FromString(self.answer(message.SerializeToString()))

    def _run(self, req: Request) -> fnv1.RunFunctionResponse:
        try:
            kind = req.xr.kind
        except Exception:
            log.exception("the composite cannot be read")
            kind = ""
        function = self._load(kind)
        if function is None:
            rsp = Response(req, ())
            served = ", ".join(sorted(self._loaders))
            rsp.fatal(f"this function serves composites of kind {served}, not {kind or 'an unnamed kind'}")
            return rsp.finish()
        rsp = Response(req, function.conditions)
        try:
            function.compose(req, rsp)
            return rsp.finish()
        except Exception:
            log.exception("function %s failed on %s %s", function.name, kind, _label(req))
            rsp = Response(req, function.conditions)
            rsp.fatal(
                f"internal error in function {function.name}; nothing was changed. "
                "Its log has the details: please report them."
            )
            return _bare(rsp, req)


def _label(req: Request) -> str:
    try:
        return f"{req.xr.namespace}/{req.xr.name}"
    except Exception:
        return "(unreadable)"


def _bare(rsp: Response, req: Request) -> fnv1.RunFunctionResponse:
    try:
        return rsp.finish()
    except Exception:
        log.exception("could not encode observed state of %s", _label(req))
        message = fnv1.RunFunctionResponse()
        message.meta.tag = req.envelope.meta.tag
        message.desired.MergeFromString(req.envelope.desired.SerializeToString())
        message.results.append(
            fnv1.Result(severity=fnv1.SEVERITY_FATAL, message="the request cannot be read; nothing was changed")
        )
        return message
