"""Plays Envoy Gateway on a workload cluster: accepts our class, Gateway and routes, and forwards by them.

Routes: by path prefix, with the prefix rewritten, to the ready endpoints of a Service in turn, or to the pod of an
InferencePool that its endpoint picker names; where no picker answers a request is refused, as Envoy does. The load
balancer's address is the first argument; its Service is the one Envoy Gateway would make.
"""

import http.client
import http.server
import itertools
import json
import socketserver
import threading
import time
from dataclasses import dataclass, field

import grpc
from tests.e2e import ext_proc
from tests.e2e.plane.client import Client, Manifest, condition, is_true
from tests.e2e.standins.loop import client, forever, say

_API = "gateway.networking.k8s.io/v1"
_POOLS = "inference.networking.k8s.io/v1"
_CONTROLLER = "gateway.envoyproxy.io/gatewayclass-controller"
_NAMESPACE = "envoy-gateway-system"


def _condition(of: Manifest, kind: str, reason: str, status: str = "True", message: str = "") -> Manifest:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": of["metadata"]["generation"],
        "lastTransitionTime": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


Address = tuple[str, int]


@dataclass
class Backend:
    """What a route points at: addresses that are ready, or those of the endpoint pickers that know them."""

    addresses: list[Address] = field(default_factory=list)
    pickers: list[Address] | None = None


@dataclass
class Table:
    """Where requests go: prefix, what replaces it, and what answers."""

    routes: list[tuple[str, str, Backend]] = field(default_factory=list)

    def find(self, path: str) -> tuple[str, Backend] | None:
        """Return the rewritten path and the backend; the longest prefix wins."""
        for prefix, replacement, backend in self.routes:
            stem = prefix.rstrip("/")
            if path == stem or path.startswith(stem + "/"):
                return replacement.rstrip("/") + (path[len(stem) :] or "/"), backend
        return None


class Gateway:
    """The controller: statuses out, table in."""

    def __init__(self, cluster: Client, address: str) -> None:
        self.cluster = cluster
        self.address = address
        self.table = Table()
        self.turn = itertools.count()

    def step(self) -> None:
        classes = {
            c["metadata"]["name"]: c
            for c in self.cluster.list(_API, "GatewayClass")
            if c["spec"]["controllerName"] == _CONTROLLER
        }
        for one in classes.values():
            self._report(one, {"conditions": [_condition(one, "Accepted", "Accepted")]}, condition(one, "Accepted"))
        gateways = [g for g in self.cluster.list(_API, "Gateway") if g["spec"]["gatewayClassName"] in classes]
        for one in gateways:
            self._gateway(one)
        self.table = self._routes(gateways)

    def _report(self, manifest: Manifest, status: Manifest, before: Manifest) -> None:
        if before.get("observedGeneration") != manifest["metadata"]["generation"] or before.get("status") != "True":
            self.cluster.patch(manifest, {"status": status}, "/status")
            say(f"{manifest['kind']} {manifest['metadata']['name']} is accepted")

    def _gateway(self, gateway: Manifest) -> None:
        meta = {"name": gateway["metadata"]["name"], "namespace": _NAMESPACE}
        if self.cluster.get("v1", "Service", meta["name"], _NAMESPACE) is None:
            self.cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE}})
            ports = [{"name": str(x["port"]), "port": x["port"]} for x in gateway["spec"]["listeners"]]
            spec = {"type": "LoadBalancer", "ports": ports}
            service = {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}
            service = self.cluster.apply(service)
            balancer = {"loadBalancer": {"ingress": [{"ip": self.address}]}}
            self.cluster.patch(service, {"status": balancer}, "/status")
        listeners = [
            {
                "name": x["name"],
                "attachedRoutes": 0,
                "supportedKinds": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute"}],
                "conditions": [
                    _condition(gateway, "Accepted", "Accepted"),
                    _condition(gateway, "Programmed", "Programmed"),
                    _condition(gateway, "ResolvedRefs", "ResolvedRefs"),
                ],
            }
            for x in gateway["spec"]["listeners"]
        ]
        status = {
            "addresses": [{"type": "IPAddress", "value": self.address}],
            "conditions": [
                _condition(gateway, "Accepted", "Accepted"),
                _condition(gateway, "Programmed", "Programmed"),
            ],
            "listeners": listeners,
        }
        self._report(gateway, status, condition(gateway, "Programmed"))

    def _routes(self, gateways: list[Manifest]) -> Table:
        names = {(g["metadata"]["namespace"], g["metadata"]["name"]) for g in gateways}
        found = []
        routes = self.cluster.list(_API, "HTTPRoute")
        for route in routes:
            namespace = route["metadata"]["namespace"]
            parents = [
                p for p in route["spec"].get("parentRefs", []) if (p.get("namespace", namespace), p["name"]) in names
            ]
            if not parents:
                continue
            resolved = True
            for rule in route["spec"]["rules"]:
                merged = Backend()
                for ref in rule.get("backendRefs", []):
                    backend = self._backend(namespace, ref)
                    resolved = resolved and backend is not None
                    if backend is not None:
                        merged.addresses += backend.addresses
                        merged.pickers = backend.pickers
                replacement = "/"
                for one in rule.get("filters", []):
                    replacement = one.get("urlRewrite", {}).get("path", {}).get("replacePrefixMatch", replacement)
                found += [(m["path"]["value"], replacement, merged) for m in rule["matches"]]
            self._accept(route, parents, resolved)
        return Table(sorted(found, key=lambda r: -len(r[0])))

    def _accept(self, route: Manifest, parents: list[Manifest], resolved: bool) -> None:
        reported = (route.get("status") or {}).get("parents") or []
        mine = next((p for p in reported if p["controllerName"] == _CONTROLLER), {})
        before = condition({"status": mine}, "ResolvedRefs")
        if before.get("observedGeneration") == route["metadata"]["generation"] and resolved == is_true(
            {"status": mine}, "ResolvedRefs"
        ):
            return
        outcome = ("True", "ResolvedRefs") if resolved else ("False", "BackendNotFound")
        status = [
            {
                "parentRef": parent,
                "controllerName": _CONTROLLER,
                "conditions": [
                    _condition(route, "Accepted", "Accepted"),
                    _condition(route, "ResolvedRefs", outcome[1], outcome[0]),
                ],
            }
            for parent in parents
        ]
        self.cluster.patch(route, {"status": {"parents": status}}, "/status")

    def _backend(self, namespace: str, backend: Manifest) -> Backend | None:
        """Return what answers, or None where the backend does not exist."""
        if backend.get("kind", "Service") == "InferencePool":
            pool = self.cluster.get(_POOLS, "InferencePool", backend["name"], namespace)
            if pool is None:
                return None
            ref = pool["spec"]["endpointPickerRef"]
            pickers = self._endpoints(namespace, ref["name"], ref["port"]["number"])
            return None if pickers is None else Backend(pickers=pickers)
        addresses = self._endpoints(namespace, backend["name"], backend["port"])
        return None if addresses is None else Backend(addresses)

    def _endpoints(self, namespace: str, name: str, number: int) -> list[Address] | None:
        """Return the ready addresses behind a port of a Service, or None where there is no such Service."""
        service = self.cluster.get("v1", "Service", name, namespace)
        if service is None:
            return None
        port_name = next((p.get("name", "") for p in service["spec"]["ports"] if p["port"] == number), None)
        found = []
        label = f"kubernetes.io/service-name={name}"
        for one in self.cluster.list("discovery.k8s.io/v1", "EndpointSlice", namespace, label):
            ports = [p["port"] for p in one.get("ports") or [] if p.get("name", "") == port_name]
            for endpoint in one.get("endpoints") or []:
                if endpoint["conditions"].get("ready") is not False:
                    found += [(address, port) for address in endpoint["addresses"] for port in ports]
        return found


def _picked(pickers: list[Address], body: bytes) -> tuple[list[Address], int, str]:
    """Ask the first picker that answers: the pod's address, or the status and words of a refusal."""
    for host, port in pickers:
        try:
            choice = ext_proc.pick(host, port, json.loads(body))
        except (grpc.RpcError, ValueError) as error:
            say(f"picker {host}:{port}: {error}")
            continue
        if choice.endpoint:
            host, _, number = choice.endpoint.split(",")[0].rpartition(":")
            return [(host, int(number))], 200, ""
        return [], choice.status, choice.message
    return [], 500, "no endpoint picker answers"


class _Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 256
    allow_reuse_address = True


def _handler(gateway: Gateway) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1

        def _forward(self) -> None:
            size = int(self.headers.get("content-length") or 0)
            body = self.rfile.read(size)
            found = gateway.table.find(self.path)
            if found is None:
                self._send(404, b"no route")
                return
            path, backend = found
            addresses = backend.addresses
            if backend.pickers is not None:
                addresses, status, message = _picked(backend.pickers, body)
                if not addresses:
                    self._send(status, message.encode())
                    return
            if not addresses:
                self._send(503, b"no healthy upstream")
                return
            host, port = addresses[next(gateway.turn) % len(addresses)]
            headers = {k: v for k, v in self.headers.items() if k.lower() not in ("connection", "content-length")}
            upstream = http.client.HTTPConnection(host, port, timeout=30)
            try:
                upstream.request(self.command, path, body, headers)
                answer = upstream.getresponse()
                if answer.headers.get("content-type") == "text/event-stream":
                    self._stream(answer)
                else:
                    self._send(answer.status, answer.read(), answer.headers.get("content-type", "text/plain"))
            except (OSError, http.client.HTTPException) as error:
                say(f"{self.path} -> {host}:{port}{path}: {error}")
                self._send(503, f"upstream connect error or disconnect/reset before headers: {error}".encode())
            finally:
                upstream.close()

        def _stream(self, answer: http.client.HTTPResponse) -> None:
            self.send_response(answer.status)
            self.send_header("content-type", "text/event-stream")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            while piece := answer.read1():
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")

        def _send(self, status: int, body: bytes, kind: str = "text/plain") -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = _forward

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


def main(address: str, kubeconfig: str) -> None:
    gateway = Gateway(client(kubeconfig), address)
    server = _Server((address, 80), _handler(gateway))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    forever(0.15, gateway.step)
