"""`modelplane render FILE...`: what each composite in the files composes, once."""

import sys
from typing import Any

import click
import yaml

from modelplane.plan import fleet, manifests
from modelplane.plan import render as rendering
from modelplane.plan.manifests import ManifestError


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("-o", "--output", type=click.Choice(["yaml"]), default="yaml", show_default=True, help="Format.")
@click.option("-r", "--include-results", is_flag=True, help="Print the results of each function too.")
@click.option("--debug", is_flag=True, help="Print the log of the functions.")
def render(files: tuple[str, ...], output: str, include_results: bool, debug: bool) -> None:
    """Print what each composite in FILE... composes in one reconcile.

    FILE is a YAML file, a folder, or - for standard input. Objects of all files are each other's required resources,
    as they are written: nothing composed by one is seen by another. Functions run in this process; no control plane,
    network or Docker is used. What is printed equals `crossplane composition render` for a single composite.
    """
    fleet.log(debug=debug)
    failed = False
    first = True
    try:
        for rendered in rendering.render(manifests.read(files)):
            if rendered.error:
                failed = True
                click.echo(f"Error: {rendered.key}: {rendered.error}", err=True)
                continue
            documents = [rendered.composite, *rendered.composed]
            if include_results:
                documents += [_result(r.severity, r.message) for r in rendered.results]
            for document in documents:
                sys.stdout.write("---\n" + dump(document))
            first = False
    except ManifestError as error:
        raise click.ClickException(str(error)) from error
    if first and not failed:
        raise click.ClickException("no Modelplane resource in these files")
    if failed:
        sys.exit(1)


def _result(severity: str, message: str) -> dict[str, Any]:
    return {
        "apiVersion": "render.crossplane.io/v1beta1",
        "kind": "Result",
        "severity": severity,
        "message": message,
    }


def dump(document: object) -> str:
    """Write one YAML document, keys sorted."""
    return yaml.dump(document, Dumper=_Dumper, sort_keys=True, default_flow_style=False, width=120, allow_unicode=True)


class _Dumper(yaml.SafeDumper):
    """Plain YAML without aliases; text of several lines as a block."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, data: str) -> yaml.ScalarNode:
    style = "|" if "\n" in data else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", data, style=style)


_Dumper.add_representer(str, _text)
