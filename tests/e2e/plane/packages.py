"""Our packages, and stubs of the providers they depend on, in a registry on loopback; installed as a user installs.

A stub has the definitions of the kinds that we compose (schemas/crds, at the versions stated there) and no program.
provider-kubernetes has all of its own definitions, from its module.
"""

import json
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import yaml
from tests.e2e import tools
from tests.e2e.plane.client import Manifest
from tests.e2e.plane.crossplane import REGISTRY

from modelplane import catalog

ROOT = Path(__file__).resolve().parents[3]
OUTPUT = ROOT / "_output" / "packages"
OURS = f"{REGISTRY}/modelplane"
CONFIGURATION = "modelplane"


@dataclass(frozen=True)
class Stub:
    """A provider package: its repository, the folder of schemas/crds its definitions are in, their group prefix."""

    repository: str
    schemas: str
    groups: tuple[str, ...]
    depends: str = ""

    @property
    def name(self) -> str:
        return self.repository.rsplit("/", 1)[-1]

    @property
    def version(self) -> str:
        return self.schemas.rsplit("-", 1)[-1]


_UPBOUND = "xpkg.upbound.io/upbound"
_CONTRIB = "xpkg.crossplane.io/crossplane-contrib"
STUBS = (
    Stub(f"{_CONTRIB}/provider-kubernetes", "provider-kubernetes-v1.3.1", ()),
    Stub(f"{_CONTRIB}/provider-helm", "provider-helm-v1.4.0", ("helm.m",)),
    Stub(f"{_UPBOUND}/provider-family-aws", "provider-aws-v2.6.0", ("aws.m",)),
    *(
        Stub(f"{_UPBOUND}/provider-aws-{g}", "provider-aws-v2.6.0", (f"{g}.aws",), f"{_UPBOUND}/provider-family-aws")
        for g in ("ec2", "efs", "eks", "iam")
    ),
    Stub(f"{_UPBOUND}/provider-family-gcp", "provider-gcp-v2.6.0", ("gcp.m",)),
    *(
        Stub(f"{_UPBOUND}/provider-gcp-{g}", "provider-gcp-v2.6.0", (f"{g}.gcp",), f"{_UPBOUND}/provider-family-gcp")
        for g in ("cloudplatform", "compute", "container")
    ),
)


def _provider_kubernetes() -> Path:
    return tools.source("provider-kubernetes") / "package"


def definitions(schemas: str, *groups: str) -> list[Manifest]:
    """Load CRDs of a folder of schemas/crds, of groups that start so."""
    files = sorted((ROOT / "schemas" / "crds" / schemas).glob("*.json"))
    return [json.loads(f.read_text()) for f in files if not groups or f.name.startswith(groups)]


def _write(stub: Stub, folder: Path) -> None:
    folder.mkdir(parents=True)
    if stub.name == "provider-kubernetes":
        package = _provider_kubernetes()
        shutil.copy(package / "crossplane.yaml", folder / "crossplane.yaml")
        for file in (package / "crds").glob("*.yaml"):
            shutil.copy(file, folder / file.name)
        return
    spec: Manifest = {"capabilities": ["safe-start"]}
    if stub.depends:
        spec["dependsOn"] = [
            {"apiVersion": "pkg.crossplane.io/v1", "kind": "Provider", "package": stub.depends, "version": ">=v2.0.0"}
        ]
    meta = {"apiVersion": "meta.pkg.crossplane.io/v1", "kind": "Provider", "metadata": {"name": stub.name}}
    (folder / "crossplane.yaml").write_text(yaml.safe_dump({**meta, "spec": spec}))
    for definition in definitions(stub.schemas, *stub.groups):
        (folder / f"{definition['metadata']['name']}.yaml").write_text(yaml.safe_dump(definition))


def version() -> str:
    """Return the version of our packages, as the staged Configuration's dependencies state it."""
    staged = yaml.safe_load((OUTPUT / "configuration" / "crossplane.yaml").read_text())
    return next(str(d["version"]) for d in staged["spec"]["dependsOn"] if d["package"].startswith(OURS))


def build(folder: Path) -> dict[Path, str]:
    """Build every package; returns the image reference by file."""
    cli = str(tools.path("crossplane-cli"))
    command = [sys.executable, str(ROOT / "package" / "packages.py"), "--registry", OURS, "--crossplane", cli]
    subprocess.run(command, check=True, capture_output=True)
    images = {OUTPUT / f"{name}.xpkg": f"{OURS}/{name}:{version()}" for name in [*catalog.NAMES, "configuration"]}
    for stub in STUBS:
        _write(stub, folder / stub.name)
        file = folder / f"{stub.name}.xpkg"
        subprocess.run([cli, "xpkg", "build", "-f", str(folder / stub.name), "-o", str(file)], check=True)
        images[file] = f"{REGISTRY}/{stub.repository}:{stub.version}"
    return images


def push(images: dict[Path, str]) -> None:
    """Push every package to the registry, which must be up."""
    cli = str(tools.path("crossplane-cli"))

    def one(pair: tuple[Path, str]) -> None:
        subprocess.run([cli, "xpkg", "push", "-f", str(pair[0]), pair[1]], check=True, capture_output=True)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(one, images.items()))


def install_manifests() -> list[Manifest]:
    """Return what a user applies first: install.yaml, as staged."""
    return [d for d in yaml.safe_load_all((OUTPUT / "install.yaml").read_text()) if d]


def redirects() -> list[Manifest]:
    """Return what makes Crossplane fetch provider packages from the registry on loopback, as from a private mirror.

    Runtime settings go by the address after rewriting, so those of install.yaml are repeated for the mirror.
    """

    def config(name: str, prefix: str, **spec: Manifest) -> Manifest:
        matches = [{"type": "Prefix", "prefix": prefix}]
        meta = {"apiVersion": "pkg.crossplane.io/v1beta1", "kind": "ImageConfig", "metadata": {"name": name}}
        return {**meta, "spec": {"matchImages": matches, **spec}}

    hosts = sorted({stub.repository.split("/")[0] for stub in STUBS})
    found = [config(h.replace(".", "-"), h, rewriteImage={"prefix": f"{REGISTRY}/{h}"}) for h in hosts]
    for one in install_manifests():
        if one["kind"] == "ImageConfig" and one["spec"]["matchImages"][0]["prefix"].startswith(tuple(hosts)):
            prefix = f"{REGISTRY}/{one['spec']['matchImages'][0]['prefix']}"
            found.append(config(f"{one['metadata']['name']}-mirror", prefix, runtime=one["spec"]["runtime"]))
    return found


def configuration() -> Manifest:
    return {
        "apiVersion": "pkg.crossplane.io/v1",
        "kind": "Configuration",
        "metadata": {"name": CONFIGURATION},
        "spec": {"package": f"{OURS}/configuration:{version()}"},
    }


def arguments(runtime_config: str) -> list[str]:
    """Return the flags that install.yaml gives the pods of a package."""
    for manifest in install_manifests():
        if manifest["kind"] == "DeploymentRuntimeConfig" and manifest["metadata"]["name"] == runtime_config:
            (container,) = manifest["spec"]["deploymentTemplate"]["spec"]["template"]["spec"]["containers"]
            return list(container["args"])
    raise KeyError(runtime_config)
