"""What a ModelCache asks for, and the clusters it may stage on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from modelplane import names
from modelplane.kube.objects import Resource, integer, items, mapping, objects, text
from modelplane.kube.taints import NO_EXECUTE, Taint, Toleration, untolerated
from modelplane.labels import TEARDOWN

HUGGING_FACE = "HuggingFace"
REHYDRATE = "modelplane.ai/rehydrate"
"""Annotation on a ModelCache: a new value makes every cluster check its files and fetch what is damaged."""
CLAIM_MAX = 50

_REPO = re.compile(r"[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)?")
_REVISION = re.compile(r"[A-Za-z0-9_./-]{1,128}")
_KEY = re.compile(r"[-._A-Za-z0-9]{1,253}")


class InvalidSpec(ValueError):  # noqa: N818 - named like the reason of the condition it becomes
    """A spec that cannot be used; the text names field, value and what is accepted."""


class UnsupportedSource(ValueError):  # noqa: N818 - named like what it says
    """A source that this version cannot stage."""


@dataclass(frozen=True)
class Cache:
    """A valid ModelCache.

    `artifact` identifies the files: source, repository, revision and patterns. `secret` and `secret_key` name a token,
    empty where none is needed. A `retained` volume outlives the cache.
    """

    namespace: str
    name: str
    repo: str
    revision: str
    include: tuple[str, ...]
    secret: str
    secret_key: str
    size_gib: int
    rehydrate: str
    retained: bool
    tolerations: tuple[Toleration, ...]

    @cached_property
    def artifact(self) -> str:
        """Identity of the wanted files."""
        return names.digest("artifact", HUGGING_FACE, self.repo, self.revision, *sorted(set(self.include)))

    @property
    def tenant(self) -> str:
        """The namespace on a workload cluster."""
        return names.tenant_namespace(self.namespace)

    def claim(self, artifact: str) -> str:
        """Name of the claim that holds an artifact."""
        return names.name(self.name, "cache", self.namespace, self.name, artifact, limit=CLAIM_MAX)


@dataclass(frozen=True)
class Cluster:
    """An InferenceCluster as a place to stage on.

    `config` and `storage_class` are empty where the cluster publishes none; `expelled` names the NoExecute taints that
    the cache does not tolerate.
    """

    name: str
    ready: bool
    config: str
    storage_class: str
    pod_security: str
    abandoned: bool
    expelled: str

    @property
    def eligible(self) -> bool:
        """Whether staging may begin here."""
        return self.ready and bool(self.config) and bool(self.storage_class) and not self.expelled


def read(xr: Resource) -> Cache:
    """Read the spec; raises InvalidSpec or UnsupportedSource."""
    source = text(xr.spec, "source")
    if source != HUGGING_FACE:
        raise UnsupportedSource(
            f"spec.source {source!r} is not supported by this version of Modelplane yet; use {HUGGING_FACE}"
        )
    block = mapping(xr.spec, "huggingFace")
    where = "spec.huggingFace"
    repo, revision = text(block, "repo"), text(block, "revision") or "main"
    size = integer(block, "sizeGiB")
    include = items(block, "include")
    secret, key = text(block, "authSecret", "name"), text(block, "authSecret", "key") or "HF_TOKEN"
    if not _REPO.fullmatch(repo) or len(repo) > 200 or set(repo.split("/")) & {".", ".."}:
        raise InvalidSpec(f"{where}.repo must be a repository such as Qwen/Qwen3-8B; got {repo[:80]!r}")
    if not _REVISION.fullmatch(revision) or set(revision.split("/")) & {"", ".", ".."}:
        raise InvalidSpec(f"{where}.revision must be a branch, a tag or a commit; got {revision[:80]!r}")
    if size is None or not 1 <= size <= 100_000:
        raise InvalidSpec(f"{where}.sizeGiB must be 1 to 100000; got {block.get('sizeGiB')!r}")
    if not all(isinstance(p, str) and 0 < len(p) <= 256 and p.isprintable() for p in include) or len(include) > 64:
        raise InvalidSpec(f"{where}.include must be at most 64 patterns, such as *.safetensors")
    if mapping(block, "authSecret") and (not secret or not _KEY.fullmatch(key)):
        raise InvalidSpec(f"{where}.authSecret must name a Secret and a key in it; got {secret!r} and {key[:80]!r}")
    return Cache(
        namespace=xr.namespace,
        name=xr.name,
        repo=repo,
        revision=revision,
        include=tuple(include),
        secret=secret,
        secret_key=key if secret else "",
        size_gib=size,
        rehydrate=xr.annotations.get(REHYDRATE, ""),
        retained=text(xr.spec, "deletionPolicy") == "Retain",
        tolerations=tuple(t for t in map(Toleration.read, objects(xr.spec, "tolerations")) if t is not None),
    )


def cluster(resource: Resource, tolerations: Sequence[Toleration]) -> Cluster:
    """Read an InferenceCluster."""
    taints = [t for t in map(Taint.read, objects(resource.spec, "taints")) if t is not None]
    return Cluster(
        name=resource.name,
        ready=resource.ready and not resource.deleting,
        config=text(resource.status, "providerConfigRef", "name"),
        storage_class=text(resource.status, "cache", "storageClassName"),
        pod_security="privileged" if text(resource.spec, "podSecurity") == "privileged" else "baseline",
        abandoned=resource.annotations.get(TEARDOWN) == "abandon",
        expelled=", ".join(str(t) for t in untolerated(tolerations, taints, NO_EXECUTE)),
    )
