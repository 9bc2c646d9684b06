"""Plays the engines: answers as an OpenAI server on every running pod's own address, and says what it was asked.

Each answer names the pod, the path and the model. A stream is three events, STREAM_SECONDS apart. Annotation
`e2e.test/queue` on a pod is the number of requests that wait in it, as vLLM's metrics say it.
"""

import http.server
import json
import socketserver
import threading
import time
import urllib.parse
from typing import cast

from tests.e2e.plane.client import Client, Manifest
from tests.e2e.standins.loop import client, forever, say

from modelplane.labels import SERVING

GRACE_SECONDS = 5
"""How long a pod that is deleted still answers; a kubelet's pod has its grace period, kwok's is gone at once."""

QUEUE = "e2e.test/queue"
# https://docs.vllm.ai/en/v0.11.0/usage/metrics.html
_METRICS = """# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting {queue}
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running 0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc 0
"""

STREAM_SECONDS = 0.3


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # One write per answer: two cost Nagle's algorithm and a delayed acknowledgement.

    def _answer(self) -> None:
        size = int(self.headers.get("content-length") or 0)
        asked = json.loads(self.rfile.read(size) or b"{}") if size else {}
        namespace, name = cast(_Server, self.server).pod
        path = urllib.parse.urlsplit(self.path).path
        if path == "/metrics":
            queue = cast(_Server, self.server).queue
            self._send(200, "text/plain; version=0.0.4", _METRICS.format(queue=queue).encode())
            return
        body = {
            "object": "chat.completion",
            "model": asked.get("model", ""),
            "choices": [{"message": {"role": "assistant", "content": "ok"}}],
            "e2e": {"pod": name, "namespace": namespace, "path": path, "host": self.headers.get("host", "")},
        }
        if asked.get("stream"):
            self._stream(body)
            return
        known = path in ("/health", "/v1/models", "/v1/chat/completions", "/v1/completions")
        self._send(200 if known else 404, "application/json", json.dumps(body).encode())

    def _send(self, status: int, kind: str, data: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, body: Manifest) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for number in range(3):
            if number:
                time.sleep(STREAM_SECONDS)
            event = f"data: {json.dumps(body)}\n\n".encode()
            self.wfile.write(b"%x\r\n%b\r\n" % (len(event), event))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    do_GET = do_POST = _answer

    def log_message(self, format: str, *args: object) -> None:
        pass


class _Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 256
    allow_reuse_address = True
    pod: tuple[str, str] = ("", "")
    queue = 0


def _name(pod: Manifest) -> tuple[str, str]:
    return pod["metadata"]["namespace"], pod["metadata"]["name"]


def _ports(pod: Manifest) -> list[int]:
    """Ports of an engine's pod; an endpoint picker's pod is none."""
    if SERVING not in (pod["metadata"].get("labels") or {}):
        return []
    return [p["containerPort"] for c in pod["spec"]["containers"] for p in c.get("ports") or []]


class Engines:
    """The servers of one cluster's pods."""

    def __init__(self, cluster: Client) -> None:
        self.cluster = cluster
        self.servers: dict[tuple[str, int], _Server] = {}

    def follow(self) -> None:
        """Serve for each pod from when it runs until it is gone."""
        for event, pod in self.cluster.watch("v1", "Pod"):
            address = pod.get("status", {}).get("podIP")
            if not address:
                continue
            for port in _ports(pod):
                key = (address, port)
                running = event != "DELETED" and pod["status"].get("phase") == "Running"
                if running:
                    if not self._owns(key, pod):
                        self._start(key, pod)
                    if key in self.servers:
                        self.servers[key].queue = int((pod["metadata"].get("annotations") or {}).get(QUEUE, 0))
                elif self._owns(key, pod):
                    timer = threading.Timer(GRACE_SECONDS, self._end, (key, pod))
                    timer.daemon = True
                    timer.start()

    def _owns(self, key: tuple[str, int], pod: Manifest) -> bool:
        """Say whether an address is served for this pod; another pod may have had the address before."""
        server = self.servers.get(key)
        return server is not None and server.pod == _name(pod)

    def _end(self, key: tuple[str, int], pod: Manifest) -> None:
        if self._owns(key, pod):
            self.servers.pop(key).shutdown()

    def _start(self, key: tuple[str, int], pod: Manifest) -> None:
        meta = pod["metadata"]
        if key in self.servers:
            self.servers[key].pod = _name(pod)
            return
        try:
            server = _Server(key, _Handler)
        except OSError as error:
            say(f"{meta['namespace']}/{meta['name']} cannot serve at {key[0]}:{key[1]}: {error}")
            return
        self.servers[key] = server
        server.pod = _name(pod)
        threading.Thread(target=self._serve, args=(server,), daemon=True).start()
        say(f"{meta['namespace']}/{meta['name']} serves at {key[0]}:{key[1]}")

    @staticmethod
    def _serve(server: _Server) -> None:
        server.serve_forever(poll_interval=0.1)
        server.server_close()


def main(*kubeconfigs: str) -> None:
    threads = []
    for path in kubeconfigs:
        engines = Engines(client(path))
        threads.append(threading.Thread(target=forever, args=(0.2, engines.follow), daemon=True))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
