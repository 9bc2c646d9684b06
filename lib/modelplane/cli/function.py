"""`modelplane function NAME`: serve a composition function."""

import logging
import sys

import click
from crossplane.function import cli as sdk

from modelplane import catalog
from modelplane.xfn.runner import Runner

MAX_RECV_MB = 64
"""A reconcile that must look at a whole fleet of 5,000 clusters fits; the SDK's default of 4 MB does not hold 1,000."""


@click.command(context_settings={"default_map": {"max_recv_message_size": MAX_RECV_MB}, "show_default": True})
@click.argument("name", metavar="NAME", type=click.Choice([*catalog.NAMES, "all"]), envvar="MODELPLANE_FUNCTION")
@sdk.standard_options
def function(
    name: str,
    *,
    debug: bool,
    address: str,
    tls_certs_dir: str | None,
    insecure: bool,
    max_recv_message_size: int,
    max_send_message_size: int | None,
) -> None:
    """Serve the composition function NAME over gRPC, or every one of them on one port with `all`."""
    from modelplane.xfn import server

    logging.basicConfig(
        level=logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
        stream=sys.stderr,
    )
    if debug:
        logging.getLogger("modelplane").setLevel(logging.DEBUG)
    runner = Runner(catalog.loaders(name))
    try:
        runner.preload()
        server.serve(
            runner,
            address,
            tls_certs_dir=tls_certs_dir,
            insecure=insecure,
            max_recv_mb=max_recv_message_size,
            max_send_mb=max_send_message_size,
        )
    except (OSError, ValueError, ImportError) as error:
        raise click.ClickException(f"function {name} cannot start: {error}") from error
