"""Ask an endpoint picker as Envoy does: over ext_proc, in TLS, whoever signed its certificate.

Source: https://github.com/envoyproxy/envoy/blob/v1.35.0/api/envoy/service/ext_proc/v3/external_processor.proto
"""

import contextlib
import json
import select
import socket
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from grpc_health.v1 import health_pb2, health_pb2_grpc

TIMEOUT_SECONDS = 10
DESTINATION = "x-gateway-destination-endpoint"
"""Header in which a picker names the pod, as address and port."""

_PACKAGE = "e2e.ext_proc"
_MESSAGES: dict[str, tuple[tuple[str, int, str], ...]] = {
    "HeaderValue": (("key", 1, "string"), ("raw_value", 3, "bytes")),
    "HeaderMap": (("headers", 1, "*HeaderValue"),),
    "HttpHeaders": (("headers", 1, "HeaderMap"), ("end_of_stream", 3, "bool")),
    "HttpBody": (("body", 1, "bytes"), ("end_of_stream", 2, "bool")),
    "ProcessingRequest": (("request_headers", 2, "HttpHeaders"), ("request_body", 4, "HttpBody")),
    "HeaderValueOption": (("header", 1, "HeaderValue"),),
    "HeaderMutation": (("set_headers", 1, "*HeaderValueOption"),),
    "CommonResponse": (("header_mutation", 2, "HeaderMutation"),),
    "Answer": (("response", 1, "CommonResponse"),),
    "HttpStatus": (("code", 1, "int32"),),
    "ImmediateResponse": (("status", 1, "HttpStatus"), ("body", 3, "bytes"), ("details", 5, "string")),
    "ProcessingResponse": (
        ("request_headers", 1, "Answer"),
        ("request_body", 3, "Answer"),
        ("immediate_response", 7, "ImmediateResponse"),
    ),
}
"""The fields of Envoy's messages that are read or written here: name, number, type; a star stands for a list."""


def _messages() -> dict[str, Any]:
    field = descriptor_pb2.FieldDescriptorProto
    scalars = {
        "string": field.TYPE_STRING,
        "bytes": field.TYPE_BYTES,
        "bool": field.TYPE_BOOL,
        "int32": field.TYPE_INT32,
    }
    file = descriptor_pb2.FileDescriptorProto(name="e2e/ext_proc.proto", package=_PACKAGE, syntax="proto3")
    for message, fields in _MESSAGES.items():
        made = file.message_type.add(name=message)
        for name, number, kind in fields:
            label = field.LABEL_REPEATED if kind.startswith("*") else field.LABEL_OPTIONAL
            one = made.field.add(name=name, number=number, label=label)
            if kind in scalars:
                one.type = scalars[kind]
            else:
                one.type, one.type_name = field.TYPE_MESSAGE, f".{_PACKAGE}.{kind.lstrip('*')}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")) for name in _MESSAGES
    }


_TYPES = _messages()


@dataclass(frozen=True)
class Choice:
    """What a picker said: the pod's address and port, or the HTTP status and the words of a refusal."""

    endpoint: str
    status: int = 200
    message: str = ""


def health(address: str, port: int, service: str) -> str:
    """Probe a gRPC health service as a kubelet does; the name of the status, or of the error's code."""
    with grpc.insecure_channel(f"{address}:{port}") as channel:
        try:
            request = health_pb2.HealthCheckRequest(service=service)
            answer = health_pb2_grpc.HealthStub(channel).Check(request, timeout=5)
        except grpc.RpcError as error:
            return str(error.code().name)
    return str(health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status))


def pick(address: str, port: int, body: dict[str, Any]) -> Choice:
    """Ask where a chat completion goes; raises grpc.RpcError where nobody answers."""
    headers = {":method": "POST", ":path": "/v1/chat/completions", ":authority": "e2e"}
    listed = {**headers, "content-type": "application/json", "x-request-id": "e2e"}
    values = [_TYPES["HeaderValue"](key=k, raw_value=v.encode()) for k, v in listed.items()]
    request = _TYPES["ProcessingRequest"]
    asked = [
        request(request_headers=_TYPES["HttpHeaders"](headers=_TYPES["HeaderMap"](headers=values))),
        request(request_body=_TYPES["HttpBody"](body=json.dumps(body).encode(), end_of_stream=True)),
    ]
    with _plain(address, port) as local, grpc.insecure_channel(local) as channel:
        call: Any = channel.stream_stream(
            "/envoy.service.ext_proc.v3.ExternalProcessor/Process",
            request_serializer=lambda m: m.SerializeToString(),
            response_deserializer=_TYPES["ProcessingResponse"].FromString,
        )
        for answer in call(iter(asked), timeout=TIMEOUT_SECONDS):
            if answer.HasField("immediate_response"):
                refused = answer.immediate_response
                return Choice("", refused.status.code, refused.body.decode() or refused.details)
            for part in (answer.request_headers, answer.request_body):
                for option in part.response.header_mutation.set_headers:
                    if option.header.key == DESTINATION:
                        return Choice(option.header.raw_value.decode())
    return Choice("", 0, "the stream ended without a choice")


@contextlib.contextmanager
def _plain(address: str, port: int) -> Iterator[str]:
    """Take TLS off a connection: gRPC in Python cannot leave a certificate without any name unchecked."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                incoming, _ = server.accept()
                plain = socket.create_connection((address, port), 5)
                with incoming, context.wrap_socket(plain) as outgoing:
                    _relay(incoming, outgoing)

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"


def _relay(incoming: socket.socket, outgoing: ssl.SSLSocket) -> None:
    """Copy both ways until one side ends; one thread, as a TLS connection is no thread's but one."""
    others: dict[socket.socket, socket.socket] = {incoming: outgoing, outgoing: incoming}
    outgoing.settimeout(1)
    while True:
        # What TLS has decrypted already makes no socket readable.
        ready = [outgoing] if outgoing.pending() else select.select(list(others), [], [])[0]
        for source in ready:
            try:
                data = source.recv(65536)
            except TimeoutError:
                # A TLS record that was none of the application's, such as a session ticket.
                continue
            if not data:
                return
            others[source].sendall(data)
