"""Plays the load balancer of the control plane's gateway: its Service's address, and bytes to Traefik's ports."""

import contextlib
import socket
import threading

from tests.e2e.plane.client import Client
from tests.e2e.standins.loop import client, forever

NAMESPACE, NAME = "traefik-system", "traefik"
PORTS = {80: 8000, 443: 8443}


def _pipe(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def _serve(address: str, port: int, to: int) -> None:
    with socket.create_server((address, port), backlog=256) as server:
        while True:
            incoming, _ = server.accept()
            try:
                outgoing = socket.create_connection(("127.0.0.1", to), 5)
            except OSError:
                incoming.close()
                continue
            for one in (incoming, outgoing):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for pair in ((incoming, outgoing), (outgoing, incoming)):
                threading.Thread(target=_pipe, args=pair, daemon=True).start()


def _service(api: Client, address: str) -> None:
    found = api.get("v1", "Service", NAME, NAMESPACE)
    if found is not None and found["status"].get("loadBalancer"):
        return
    api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    ports = [{"name": str(p), "port": p, "targetPort": to} for p, to in PORTS.items()]
    meta = {"name": NAME, "namespace": NAMESPACE}
    spec = {"type": "LoadBalancer", "ports": ports}
    service = api.apply({"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec})
    api.patch(service, {"status": {"loadBalancer": {"ingress": [{"ip": address}]}}}, "/status")


def main(address: str, kubeconfig: str) -> None:
    for port, to in PORTS.items():
        threading.Thread(target=_serve, args=(address, port, to), daemon=True).start()
    api = client(kubeconfig)
    forever(1, lambda: _service(api, address))
