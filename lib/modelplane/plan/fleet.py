"""A control plane filled from manifests, ready to run."""

import logging
from collections.abc import Iterable, Sequence

from modelplane import catalog
from modelplane.kube.objects import Object, objects, text
from modelplane.plan.manifests import Manifest, ManifestError
from modelplane.simulate import Key, RefusedError, World
from modelplane.simulate.definitions import Definition, load
from modelplane.simulate.store import group_of, key_of
from modelplane.xfn.caller import Caller, in_process
from modelplane.xfn.runner import Runner


def log(*, debug: bool) -> None:
    """Send the functions' log to standard error, or nowhere: what a user must know is in results and conditions."""
    if debug:
        logging.basicConfig(format="%(levelname)s %(name)s %(message)s")
        logging.getLogger("modelplane").setLevel(logging.DEBUG)
    else:
        logging.getLogger("modelplane").addHandler(logging.NullHandler())


def world(clock: float) -> World:
    """An empty control plane that runs the functions in this process, at a fixed time."""

    def now() -> float:
        return made.clock

    made = World(Caller(in_process(Runner(catalog.loaders("all"), now=now))), clock=clock)
    return made


def configs_of(cluster: str, manifests: Iterable[Manifest]) -> set[str]:
    """Names of the provider configs among live objects that an InferenceCluster owns, itself or through others."""
    found = [m.obj for m in manifests]
    owners = {
        text(obj, "metadata", "uid")
        for obj in found
        if text(obj, "kind") == "InferenceCluster" and text(obj, "metadata", "name") == cluster
    }
    names: set[str] = set()
    while owners:
        below = [o for o in found if any(text(r, "uid") in owners for r in objects(o, "metadata", "ownerReferences"))]
        names |= {text(o, "metadata", "name") for o in below if text(o, "kind").endswith("ProviderConfig")}
        owners = {text(o, "metadata", "uid") for o in below}
    return names


def check(manifests: Sequence[Manifest]) -> None:
    """Refuse two manifests for one object.

    Raises ManifestError that names both places.
    """
    seen: dict[Key, Manifest] = {}
    for manifest in manifests:
        key = key_of(manifest.obj)
        if key in seen:
            raise ManifestError(f"{manifest.place()}: {key} is also at {seen[key].place()}")
        seen[key] = manifest


def apply(target: World, manifests: Iterable[Manifest]) -> None:
    """Apply manifests.

    Raises ManifestError with every problem of every manifest, each with its file and line.
    """
    problems: list[str] = []
    for manifest in manifests:
        try:
            target.apply(dict(manifest.obj))
        except RefusedError as refused:
            problems += [f"{manifest.place(p.path)}: {refused.key}: {p.path}: {p.message}" for p in refused.problems]
    if problems:
        raise ManifestError("\n".join(problems))


def is_composite(obj: Object) -> bool:
    """Whether an object is one of our kinds."""
    return definition(obj) is not None


def definition(obj: Object) -> Definition | None:
    """Definition of an object's kind, None where it is not ours."""
    return load().get((group_of(str(obj.get("apiVersion", ""))), str(obj.get("kind", ""))))
