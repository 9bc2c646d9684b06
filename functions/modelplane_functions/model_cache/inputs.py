"""What a ModelCache asks for, and the clusters it may stage on."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from modelplane import names
from modelplane.kube.names import is_dns_subdomain
from modelplane.kube.objects import Resource, integer, items, mapping, objects, text
from modelplane.kube.taints import NO_EXECUTE, Taint, Toleration, untolerated
from modelplane.labels import TEARDOWN

HUGGING_FACE, EXISTING_CLAIM = "HuggingFace", "ExistingClaim"
REHYDRATE = "modelplane.ai/rehydrate"
"""Annotation on a ModelCache: a new value makes every cluster check its files and fetch what is damaged."""
CLAIM_MAX = 50

_REPO = re.compile(r"[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)?")
_REVISION = re.compile(r"[A-Za-z0-9_./-]{1,128}")
_KEY = re.compile(r"[-._A-Za-z0-9]{1,253}")


class InvalidSpec(ValueError):  # noqa: N818 - named like the reason of the condition it becomes
    """A spec that cannot be used; the text names field, value and what is accepted."""


@dataclass(frozen=True)
class Cache:
    """A valid ModelCache.

    `identity` is what tells its files from others; `claim_name` is the user's own claim, empty where one is made.
    `secret` and `secret_key` name a token, empty where none is needed. A `retained` volume outlives the cache.
    """

    namespace: str
    name: str
    identity: tuple[str, ...]
    tolerations: tuple[Toleration, ...]
    retained: bool
    claim_name: str = ""
    sub_path: str = ""
    repo: str = ""
    revision: str = ""
    include: tuple[str, ...] = ()
    secret: str = ""
    secret_key: str = ""
    size_gib: int = 0
    rehydrate: str = ""

    @cached_property
    def artifact(self) -> str:
        """Identity of the wanted files, as a name part."""
        return names.digest("artifact", *self.identity)

    @property
    def existing(self) -> bool:
        """Whether the files are on a claim of the user's."""
        return bool(self.claim_name)

    @property
    def tenant(self) -> str:
        """The namespace on a workload cluster."""
        return names.tenant_namespace(self.namespace)

    def claim(self, artifact: str) -> str:
        """Name of the claim that holds an artifact."""
        return self.claim_name or names.name(self.name, "cache", self.namespace, self.name, artifact, limit=CLAIM_MAX)


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
    needs_storage: bool
    abandoned: bool
    expelled: str

    @property
    def unsupported(self) -> bool:
        """Whether files cannot be staged here for want of shared storage."""
        return self.needs_storage and not self.storage_class

    @property
    def eligible(self) -> bool:
        """Whether staging may begin here."""
        return self.ready and bool(self.config) and not self.unsupported and not self.expelled


def read(xr: Resource) -> Cache:
    """Read the spec; raises InvalidSpec."""
    source = text(xr.spec, "source")
    if source == HUGGING_FACE:
        return _hugging_face(xr)
    if source == EXISTING_CLAIM:
        return _existing_claim(xr)
    raise InvalidSpec(f"spec.source must be {HUGGING_FACE} or {EXISTING_CLAIM}; got {source[:80]!r}")


def _common(xr: Resource) -> dict[str, Any]:
    return {
        "namespace": xr.namespace,
        "name": xr.name,
        "retained": text(xr.spec, "deletionPolicy") == "Retain",
        "tolerations": tuple(t for t in map(Toleration.read, objects(xr.spec, "tolerations")) if t is not None),
    }


def _existing_claim(xr: Resource) -> Cache:
    block, where = mapping(xr.spec, "existingClaim"), "spec.existingClaim"
    claim, path = text(block, "claimName"), text(block, "subPath")
    if not is_dns_subdomain(claim):
        raise InvalidSpec(f"{where}.claimName must be the name of a PersistentVolumeClaim; got {claim[:80]!r}")
    if path and (len(path) > 1024 or not path.isprintable() or set(path.split("/")) & {"", ".", ".."}):
        raise InvalidSpec(f"{where}.subPath must be a relative path such as models/qwen; got {path[:80]!r}")
    return Cache(identity=(EXISTING_CLAIM, claim, path), claim_name=claim, sub_path=path, **_common(xr))


def _hugging_face(xr: Resource) -> Cache:
    block, where = mapping(xr.spec, "huggingFace"), "spec.huggingFace"
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
        identity=(HUGGING_FACE, repo, revision, *sorted(set(include))),
        repo=repo,
        revision=revision,
        include=tuple(include),
        secret=secret,
        secret_key=key if secret else "",
        size_gib=size,
        rehydrate=xr.annotations.get(REHYDRATE, ""),
        **_common(xr),
    )


def cluster(resource: Resource, cache: Cache) -> Cluster:
    """Read an InferenceCluster."""
    taints = [t for t in map(Taint.read, objects(resource.spec, "taints")) if t is not None]
    return Cluster(
        name=resource.name,
        ready=resource.ready and not resource.deleting,
        config=text(resource.status, "providerConfigRef", "name"),
        storage_class=text(resource.status, "cache", "storageClassName"),
        pod_security="privileged" if text(resource.spec, "podSecurity") == "privileged" else "baseline",
        needs_storage=not cache.existing,
        abandoned=resource.annotations.get(TEARDOWN) == "abandon",
        expelled=", ".join(str(t) for t in untolerated(cache.tolerations, taints, NO_EXECUTE)),
    )
