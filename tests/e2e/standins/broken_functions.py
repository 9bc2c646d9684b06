"""Plays functions that are broken: every call is answered with a fatal result."""

from modelplane.xfn import server
from modelplane.xfn.runner import Runner


def main(address: str, certificates: str) -> None:
    server.serve(Runner({}), address, tls_certs_dir=certificates, insecure=False, max_recv_mb=64, max_send_mb=None)
