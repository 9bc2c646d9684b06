"""The other side of the wire: call a function as Crossplane does, and read its answer as values.

Tests, `render` and `plan` call through here, over gRPC or in process; nothing else outside this package sees protobuf.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import grpc
from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from google.protobuf import struct_pb2

from modelplane.kube.objects import Condition, Object
from modelplane.xfn import wire
from modelplane.xfn.runner import Runner

Transport = Callable[[bytes], bytes]
"""Takes an encoded RunFunctionRequest, answers an encoded RunFunctionResponse."""

METHOD = "/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction"
MAX_RESPONSE_MB = 4
"""Crossplane's own client refuses a longer response; what a function answers must fit."""
MAX_REQUEST_MB = 64

CAPABILITIES = (
    fnv1.CAPABILITY_CAPABILITIES,
    fnv1.CAPABILITY_REQUIRED_RESOURCES,
    fnv1.CAPABILITY_CREDENTIALS,
    fnv1.CAPABILITY_CONDITIONS,
    fnv1.CAPABILITY_REQUIRED_SCHEMAS,
)
"""What Crossplane 2.3 says it can do."""

_WORDS = {
    fnv1.STATUS_CONDITION_TRUE: "True",
    fnv1.STATUS_CONDITION_FALSE: "False",
    fnv1.STATUS_CONDITION_UNKNOWN: "Unknown",
}
_SEVERITIES = {
    fnv1.SEVERITY_FATAL: "Fatal",
    fnv1.SEVERITY_WARNING: "Warning",
    fnv1.SEVERITY_NORMAL: "Normal",
}
_READY = {fnv1.READY_TRUE: True, fnv1.READY_FALSE: False}


@dataclass(frozen=True)
class Selector:
    """One requirement: resources of a kind by name, by labels, or all of them; an empty namespace means any."""

    api_version: str
    kind: str
    match_name: str = ""
    match_labels: tuple[tuple[str, str], ...] = ()
    namespace: str = ""


@dataclass(frozen=True)
class Result:
    """One result of a call; `severity` is Fatal, Warning or Normal."""

    severity: str
    message: str
    reason: str = ""


@dataclass(frozen=True)
class Answer:
    """What a function answered.

    `desired` and `readiness` are by composition key; a readiness or `ready` of None was not said. `ttl` is in seconds.
    """

    desired: Mapping[str, Object]
    readiness: Mapping[str, bool | None]
    ready: bool | None
    status: Object
    conditions: Mapping[str, Condition]
    results: Sequence[Result]
    requirements: Mapping[str, Selector]
    ttl: float
    observed: Mapping[str, Object] = field(default_factory=dict)
    sent: int = 0
    received: int = 0

    @property
    def fatal(self) -> str:
        """The message of the fatal result, empty where there is none."""
        return next((r.message for r in self.results if r.severity == "Fatal"), "")

    @property
    def warnings(self) -> list[str]:
        """Messages of warning results."""
        return [r.message for r in self.results if r.severity == "Warning"]

    @property
    def lost(self) -> list[str]:
        """Observed keys that Crossplane would delete because of this answer; a fatal answer deletes nothing."""
        return [] if self.fatal else sorted(set(self.observed) - set(self.desired))


class Caller:
    """Calls functions through one transport."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._encode: Callable[[Object], bytes] = encode

    def remembering(self) -> "Caller":
        """A caller that encodes an object once, for whoever never changes an object in place."""
        other = Caller(self._transport)
        other._encode = Encoded().encode
        return other

    def call(
        self,
        xr: Object,
        observed: Mapping[str, Object] | None = None,
        required: Mapping[str, Sequence[Object]] | None = None,
    ) -> Answer:
        """Run a function once.

        `required` holds what Crossplane has looked up so far; an empty sequence says that it looked and found nothing.
        Raises ConnectionError where the function cannot be reached or answers with an error of the transport.
        """
        observed = observed or {}
        payload = request(xr, observed, required or {}, self._encode)
        return read(self._transport(payload), observed, len(payload))


def encode(obj: Object) -> bytes:
    """Encode an object; equal objects get equal bytes."""
    struct = struct_pb2.Struct()
    wire.fill(struct, obj)
    return struct.SerializeToString(deterministic=True)


class Encoded:
    """Objects by identity with their encoding, the latest CAPACITY of them."""

    CAPACITY = 200_000

    def __init__(self) -> None:
        self._known: dict[int, tuple[Object, bytes]] = {}

    def encode(self, obj: Object) -> bytes:
        """Encode an object that nobody changes."""
        known = self._known.get(id(obj))
        if known is not None:
            return known[1]
        payload = encode(obj)
        if len(self._known) >= self.CAPACITY:
            del self._known[next(iter(self._known))]
        self._known[id(obj)] = (obj, payload)
        return payload


def request(
    xr: Object,
    observed: Mapping[str, Object],
    required: Mapping[str, Sequence[Object]],
    encode: Callable[[Object], bytes] = encode,
) -> bytes:
    """Encode a request."""
    message = wire.Envelope()
    message.meta.tag = "modelplane"
    message.meta.capabilities.extend(CAPABILITIES)
    message.observed.composite.resource = encode(xr)
    for key in sorted(observed):
        message.observed.resources[key].resource = encode(observed[key])
    for name in sorted(required):
        message.required_resources[name].SetInParent()
        for found in required[name]:
            message.required_resources[name].items.add().resource = encode(found)
    return bytes(message.SerializeToString(deterministic=True))


def read(payload: bytes, observed: Mapping[str, Object], sent: int) -> Answer:
    """Decode a response."""
    message = fnv1.RunFunctionResponse.FromString(payload)
    desired = {key: wire.from_struct(message.desired.resources[key].resource) for key in message.desired.resources}
    composite: dict[str, Any] = wire.from_struct(message.desired.composite.resource)
    return Answer(
        desired={key: desired[key] for key in sorted(desired)},
        readiness={key: _READY.get(message.desired.resources[key].ready) for key in sorted(desired)},
        ready=_READY.get(message.desired.composite.ready),
        status=composite.get("status") or {},
        conditions={
            c.type: Condition(c.type, _WORDS.get(c.status, "Unknown"), c.reason, c.message) for c in message.conditions
        },
        results=[Result(_SEVERITIES.get(r.severity, "Normal"), r.message, r.reason) for r in message.results],
        requirements={
            name: _selector(message.requirements.resources[name]) for name in sorted(message.requirements.resources)
        },
        ttl=message.meta.ttl.seconds + message.meta.ttl.nanos / 1e9,
        observed=observed,
        sent=sent,
        received=len(payload),
    )


def _selector(raw: fnv1.ResourceSelector) -> Selector:
    return Selector(
        api_version=raw.api_version,
        kind=raw.kind,
        match_name=raw.match_name if raw.WhichOneof("match") == "match_name" else "",
        match_labels=tuple(sorted(raw.match_labels.labels.items())),
        namespace=raw.namespace if raw.HasField("namespace") else "",
    )


def in_process(runner: Runner) -> Transport:
    """Call a runner of this process."""
    return runner.answer


def over_grpc(target: str, *, timeout: float = 60.0) -> tuple[Transport, Callable[[], None]]:
    """Call a function that is served without TLS at `target`; also answers how to close the channel.

    `timeout` is in seconds. Calls raise ConnectionError where the function fails or cannot be reached.
    """
    mb = 1024 * 1024
    channel = grpc.insecure_channel(
        target,
        options=[
            ("grpc.max_receive_message_length", MAX_RESPONSE_MB * mb),
            ("grpc.max_send_message_length", MAX_REQUEST_MB * mb),
        ],
    )
    method: Any = channel.unary_unary(METHOD)

    def run(payload: bytes) -> bytes:
        try:
            return bytes(method(payload, timeout=timeout, wait_for_ready=True))
        except grpc.RpcError as error:
            raise ConnectionError(f"function at {target}: {error}") from error

    return run, channel.close
