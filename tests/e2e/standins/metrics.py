"""Plays a metrics adapter, such as KEDA's: values that a test sets, as the external metrics API serves them.

Source: https://github.com/kubernetes/metrics/blob/v0.36.0/pkg/apis/external_metrics/v1beta1/types.go
"""

import contextlib
import http.server
import json
import ssl
import threading
import time
from pathlib import Path

from tests.e2e.plane.client import Client, Manifest
from tests.e2e.plane.waiting import wait

_GROUP = "external.metrics.k8s.io"
_ROOT = f"/apis/{_GROUP}/v1beta1"
_NAME = {"name": "e2e-metrics", "namespace": "kube-system"}


class External:
    """The adapter, registered with an API server between `with` and its end. `keys` has its tls.crt and tls.key."""

    def __init__(self, client: Client, keys: Path) -> None:
        self.client = client
        self.values: dict[str, int] = {}
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(keys / "tls.crt", keys / "tls.key")
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(self.values))
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._made = self._manifests(self._server.server_port)

    def _manifests(self, port: int) -> list[Manifest]:
        service = {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}
        api = {
            "group": _GROUP,
            "version": "v1beta1",
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "insecureSkipTLSVerify": True,
            "service": {**_NAME, "port": port},
        }
        return [
            {"apiVersion": "v1", "kind": "Service", "metadata": _NAME, "spec": service},
            {
                "apiVersion": "apiregistration.k8s.io/v1",
                "kind": "APIService",
                "metadata": {"name": f"v1beta1.{_GROUP}"},
                "spec": api,
            },
        ]

    def __enter__(self) -> "External":
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        for manifest in self._made:
            self.client.apply(manifest)
        wait("the external metrics API is served", lambda: self.client.request("GET", _ROOT), 30)
        return self

    def __exit__(self, *_: object) -> None:
        # An API that is registered and away holds up the deletion of every namespace.
        for manifest in reversed(self._made):
            self.client.delete(manifest)
        self._server.shutdown()
        self._server.server_close()


def _handler(values: dict[str, int]) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            answer = self._answer(self.path.split("?")[0].rstrip("/"))
            body = json.dumps(answer).encode()
            # Whoever asked may have given up.
            with contextlib.suppress(OSError):
                self.send_response(404 if answer is None else 200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        def _answer(self, path: str) -> Manifest | None:
            name = path.rsplit("/", 1)[-1]
            if path == _ROOT:
                one = {"name": "queued", "singularName": "", "namespaced": True, "kind": "ExternalMetricValueList"}
                resources = [{**one, "name": n, "verbs": ["get"]} for n in values]
                meta = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{_GROUP}/v1beta1"}
                return {**meta, "resources": resources}
            if path.startswith(f"{_ROOT}/namespaces/") and name in values:
                now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
                item = {"metricName": name, "metricLabels": {}, "timestamp": now, "value": str(values[name])}
                meta = {"kind": "ExternalMetricValueList", "apiVersion": f"{_GROUP}/v1beta1", "metadata": {}}
                return {**meta, "items": [item]}
            return None

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler
