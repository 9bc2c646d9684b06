"""Serve functions over gRPC.

The SDK's own `serve` has no health service, answers on the event loop and encodes maps in no particular order. Here a
call runs on a worker thread, so that health checks and other calls are answered while one works, and responses are
encoded deterministically. Options and credentials are the SDK's.
"""

import asyncio
import logging
import signal
from concurrent.futures import ThreadPoolExecutor

import grpc
from crossplane.function import runtime
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from modelplane.xfn.runner import Runner

SERVICES = (
    "apiextensions.fn.proto.v1.FunctionRunnerService",
    "apiextensions.fn.proto.v1beta1.FunctionRunnerService",
)
"""Both versions have the same wire format, so the same bytes answer either."""
GRACE_SECONDS = 5
WORKERS = 4

log = logging.getLogger(__name__)


def serve(
    runner: Runner,
    address: str,
    *,
    tls_certs_dir: str | None,
    insecure: bool,
    max_recv_mb: int,
    max_send_mb: int | None,
) -> None:
    """Serve until SIGTERM or SIGINT.

    Raises ValueError without credentials and without `insecure`, OSError where the certificates cannot be read or the
    address cannot be listened on.
    """
    credentials = None
    if not insecure:
        if tls_certs_dir is None:
            message = "no credentials: give --tls-server-certs-dir, or --insecure for local use"
            raise ValueError(message)
        credentials = runtime.load_credentials(tls_certs_dir)
    mb = 1024 * 1024
    options = [
        ("grpc.max_receive_message_length", max_recv_mb * mb),
        ("grpc.max_send_message_length", (max_send_mb or max_recv_mb) * mb),
        ("grpc.so_reuseport", 0),
    ]
    asyncio.run(_serve(runner, address, credentials, options))


async def _serve(
    runner: Runner, address: str, credentials: grpc.ServerCredentials | None, options: list[tuple[str, int]]
) -> None:
    server = grpc.aio.server(options=options)
    pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="function")
    loop = asyncio.get_running_loop()

    async def run(payload: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        return await loop.run_in_executor(pool, runner.answer, payload)

    handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(run)
    for service in SERVICES:
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {"RunFunction": handler}),))
    checks = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(checks, server)
    reflection.enable_server_reflection((reflection.SERVICE_NAME, health.SERVICE_NAME, *SERVICES), server)

    try:
        if credentials is None:
            port = server.add_insecure_port(address)
        else:
            port = server.add_secure_port(address, credentials)
    except RuntimeError as error:
        raise OSError(f"cannot listen on {address}: {error}") from error
    if not port:
        raise OSError(f"cannot listen on {address}")

    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await server.start()
    for service in ("", *SERVICES):
        await checks.set(service, health_pb2.HealthCheckResponse.SERVING)
    log.info("serving on %s (port %d)", address, port)
    await stop.wait()
    await checks.enter_graceful_shutdown()
    await server.stop(GRACE_SECONDS)
    pool.shutdown(wait=False, cancel_futures=True)
