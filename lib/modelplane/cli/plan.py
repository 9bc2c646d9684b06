"""`modelplane plan PATH...`: what a fleet would become, before anything is applied."""

import json
import sys
from collections.abc import Callable

import click

from modelplane.kube.objects import Object, mapping, text
from modelplane.plan import fleet, manifests, survey, table
from modelplane.plan.manifests import Manifest, ManifestError
from modelplane.simulate import World
from modelplane.simulate.world import EPOCH, UnsettledError

LATER = 600
"""Seconds after which a cluster that does not answer counts as unreachable, and then some."""


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "-o", "--output", type=click.Choice(["table", "yaml", "json"]), default="table", show_default=True, help="Format."
)
@click.option("--observed", "observed", multiple=True, metavar="FILE", help="Start from a live cluster's objects.")
@click.option("--without", "lost", multiple=True, metavar="CLUSTER", help="Plan as if this cluster were gone.")
@click.option(
    "--replicas", "replicas", multiple=True, metavar="NAME=N", help="Plan with this many replicas of a deployment."
)
@click.option("--debug", is_flag=True, help="Print the log of the functions.")
def plan(
    paths: tuple[str, ...],
    output: str,
    observed: tuple[str, ...],
    lost: tuple[str, ...],
    replicas: tuple[str, ...],
    debug: bool,
) -> None:
    """Simulate the whole control plane on the manifests under PATH... and print what it would do.

    PATH is a YAML file, a folder, or - for standard input. The functions are the ones that a control plane calls; what
    is simulated is Crossplane, the providers and the workload clusters, where everything works. A Secret that the
    manifests do not hold is assumed to exist. Nothing is applied and no cluster or network is used.

    With --without the cluster is gone: live replicas on it are replaced elsewhere where there is room.

    With --observed FILE (from `kubectl get ... -o yaml`, or -) the plan starts from live objects and also says what
    would be added, changed and deleted.

    Exits with 0 if the plan could be made, whether or not everything has a place, else with 1.
    """
    fleet.log(debug=debug)
    try:
        found = manifests.read(paths)
        fleet.check(found)
        live = manifests.read(observed) if observed else []
        unreachable = {config for name in lost for config in fleet.configs_of(name, live)}
        for name in lost:
            found, live = _without(name, found, live)
        for setting in replicas:
            _scale(setting, found, live)
        if not any(fleet.is_composite(m.obj) for m in (*found, *live)):
            raise ManifestError("no Modelplane resource in these files")
        world = fleet.world(EPOCH)
        world.restore(_cleaned(m.obj) for m in live)
        before = world.store.snapshot() if observed else None
        world.providers.unreachable |= unreachable
        fleet.apply(world, found)
        start = list(world.store)
        settled = world.settle(progress=_progress())
        if unreachable:
            world.advance(LATER)
            settled = settled.then(world.settle(progress=_progress()))
    except (ManifestError, UnsettledError) as error:
        raise click.ClickException(str(error)) from error
    if output == "yaml":
        _print_objects(world)
        return
    report = survey.survey(world, settled, start, before)
    if output == "json":
        click.echo(json.dumps(report.raw(), indent=2, ensure_ascii=False))
    else:
        click.echo(table.draw(report, terminal=sys.stdout.isatty()), nl=False)


def _print_objects(world: World) -> None:
    from modelplane.cli.render import dump

    for obj in world.store:
        click.echo("---\n" + dump(obj), nl=False)


def _without(name: str, found: list[Manifest], live: list[Manifest]) -> tuple[list[Manifest], list[Manifest]]:
    def stays(manifest: Manifest) -> bool:
        return not (text(manifest.obj, "kind") == "InferenceCluster" and text(manifest.obj, "metadata", "name") == name)

    kept, kept_live = [m for m in found if stays(m)], [m for m in live if stays(m)]
    if len(kept) == len(found) and len(kept_live) == len(live):
        names = sorted(
            text(m.obj, "metadata", "name") for m in (*found, *live) if text(m.obj, "kind") == "InferenceCluster"
        )
        raise ManifestError(f"--without {name}: no such InferenceCluster; there are: {', '.join(names) or 'none'}")
    return kept, kept_live


def _scale(setting: str, found: list[Manifest], live: list[Manifest]) -> None:
    name, equals, number = setting.rpartition("=")
    if not equals or not number.isdigit() or not name:
        raise ManifestError(f"--replicas {setting}: must be NAME=N or NAMESPACE/NAME=N, such as qwen=8")
    namespace, _, short = name.rpartition("/")
    matching = [
        m.obj
        for m in (*found, *live)
        if text(m.obj, "kind") == "ModelDeployment"
        and text(m.obj, "metadata", "name") == short
        and namespace in ("", text(m.obj, "metadata", "namespace"))
    ]
    places = sorted({text(obj, "metadata", "namespace") for obj in matching})
    if not matching:
        raise ManifestError(f"--replicas {setting}: no ModelDeployment {name}")
    if len(places) > 1:
        raise ManifestError(f"--replicas {setting}: {short} is in namespaces {', '.join(places)}; say NAMESPACE/NAME=N")
    for obj in matching:
        obj["spec"] = {**mapping(obj, "spec"), "replicas": int(number)}


def _cleaned(obj: Object) -> Object:
    meta = {k: v for k, v in mapping(obj, "metadata").items() if k not in ("managedFields", "selfLink")}
    return {**obj, "metadata": meta}


def _progress() -> Callable[[int, int, int], None] | None:
    if not sys.stderr.isatty():
        return None

    def show(number: int, done: int, total: int) -> None:
        if total >= 100 and done % 20 == 0:
            click.echo(f"\rround {number}: {done} of {total} ", nl=False, err=True)

    return show
