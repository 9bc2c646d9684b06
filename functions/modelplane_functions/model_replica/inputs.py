"""A ModelReplica as values, or all that is wrong with it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from modelplane import names
from modelplane.kube.names import is_dns_subdomain, is_label_value, is_qualified_name
from modelplane.kube.objects import Resource, dig, integer, items, mapping, objects, strings, text
from modelplane.kube.problem import Problem, quote
from modelplane.kube.quantity import Quantity, QuantityError
from modelplane.labels import CLUSTER, GROUP, REVISION

STANDALONE, LEADER, WORKER = "Standalone", "Leader", "Worker"
UNIFIED, PREFILL_DECODE = "Unified", "PrefillDecode"
PREFILL, DECODE = "Prefill", "Decode"
IPC_LOCK = "IPC_LOCK"

PICKER_SUFFIX = "-epp"
"""Ends the names of a replica's endpoint picker, so that no replica may be named like another's picker."""
PORT = 8000
HEALTH_PATH = "/health"
STARTUP_TIMEOUT_S = 3600
DRAIN_S = 60
PROGRESS_DEADLINE_S = 3600
CACHE_PATH = "model"
"""Directory of a cache's volume that holds its files, where spec.modelCacheRef.subPath does not say."""

RESERVED_ENV = ("MODELPLANE_", "LWS_")

_ENGINE = re.compile(r"[a-z]([-a-z0-9]{0,28}[a-z0-9])?")
_ENV = re.compile(r"[ -<>-~]{1,256}")
_KEY = re.compile(r"[-._A-Za-z0-9]{1,253}")
_IMAGE = re.compile(r"[!-~]{1,1024}")
_PATH = re.compile(r"/[!-~]{0,252}")


@dataclass(frozen=True)
class Member:
    """One part of an engine; `nodes` is the number of its pods in one copy."""

    role: str
    pool: str
    image: str
    nodes: int = 1
    command: Sequence[str] = ()
    args: Sequence[str] = ()
    env: Sequence[Mapping[str, Any]] = ()
    requests: Sequence[Mapping[str, Any]] = ()
    usage: Mapping[str, int] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    cpu: tuple[str, str] = ("", "")
    """Request and limit; empty where not set."""
    memory: tuple[str, str] = ("", "")
    shared_memory: str = ""
    capabilities: Sequence[str] = ()
    pull_secrets: Sequence[str] = ()

    @property
    def serves(self) -> bool:
        """Whether requests reach the member's pods."""
        return self.role != WORKER


@dataclass(frozen=True)
class Engine:
    """One engine; `raw` is its manifest as written."""

    name: str
    workload: str
    copies: int
    phase: str
    members: Sequence[Member]
    raw: Mapping[str, Any]
    port: int = PORT
    health_path: str = HEALTH_PATH
    startup_timeout_s: int = STARTUP_TIMEOUT_S

    @property
    def gang(self) -> bool:
        """Whether one copy spans several pods."""
        return len(self.members) > 1

    def member(self, role: str) -> Member:
        """The member with a role. Raises StopIteration where there is none."""
        return next(m for m in self.members if m.role == role)


@dataclass(frozen=True)
class Replica:
    """A valid ModelReplica."""

    namespace: str
    name: str
    rid: str
    mode: str
    engines: Sequence[Engine]
    revision: str
    cache: str
    cache_claim: str
    cache_path: str
    drain_s: int

    @property
    def tenant(self) -> str:
        """The namespace on the workload cluster."""
        return names.tenant_namespace(self.namespace)

    @property
    def pods(self) -> int:
        """How many pods requests can be sent to."""
        return sum(e.copies for e in self.engines)


def progress_deadline_s(xr: Resource) -> int:
    """Seconds that a replica may take to serve."""
    return integer(xr.spec, "progressDeadlineSeconds") or PROGRESS_DEADLINE_S


def missing_label(xr: Resource) -> str:
    """Say how label modelplane.ai/cluster differs from spec.clusterName; empty where it does not."""
    wanted, found = text(xr.spec, "clusterName"), xr.labels.get(CLUSTER, "")
    if wanted == found:
        return ""
    shown = f"is {found}" if found else "is missing"
    return (
        f"label {CLUSTER} {shown}; it must equal spec.clusterName, {wanted}, so that the devices of this replica are "
        "counted. Nothing new is composed until it does."
    )


def read(xr: Resource) -> Replica | list[Problem]:
    """Read the spec."""
    reader = _Reader()
    replica = reader.replica(xr)
    return reader.problems or replica


class _Reader:
    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def refuse(self, path: str, value: object, accepted: str) -> None:
        self.problems.append(Problem(path, f"got {quote(value)}; {accepted}"))

    def replica(self, xr: Resource) -> Replica:
        rid = names.replica_id(xr.namespace, xr.name)
        if rid.endswith(PICKER_SUFFIX):
            self.refuse("metadata.name", xr.name, f"a name that does not end with {PICKER_SUFFIX}")
        mode = text(xr.spec, "serving", "mode") or UNIFIED
        if mode not in (UNIFIED, PREFILL_DECODE):
            self.refuse("spec.serving.mode", mode, f"it must be {UNIFIED} or {PREFILL_DECODE}")
        engines = []
        for index, raw in enumerate(objects(xr.spec, "engines")):
            engines.append(self.engine(rid, raw, f"spec.engines[{index}]"))
        if not engines:
            self.refuse("spec.engines", dig(xr.spec, "engines"), "at least one engine is needed")
        if len({e.name for e in engines}) < len(engines):
            self.refuse("spec.engines", [e.name for e in engines], "engine names must be unique")
        if len({e.port for e in engines}) > 1:
            self.refuse("spec.engines", [e.port for e in engines], "all engines must have the same http.port")
        if mode == PREFILL_DECODE and sorted(e.phase for e in engines) != [DECODE, PREFILL]:
            self.refuse("spec.engines", [e.phase for e in engines], f"one {PREFILL} and one {DECODE} engine are needed")
        return Replica(
            namespace=xr.namespace,
            name=xr.name,
            rid=rid,
            mode=mode,
            engines=engines,
            revision=xr.labels.get(REVISION, ""),
            cache=text(xr.spec, "modelCacheRef", "name"),
            cache_claim=text(xr.spec, "modelCacheRef", "claimName"),
            cache_path=self.cache_path(xr),
            drain_s=_or(integer(xr.spec, "drainSeconds"), DRAIN_S),
        )

    def cache_path(self, xr: Resource) -> str:
        path = dig(xr.spec, "modelCacheRef", "subPath")
        if path is None:
            return CACHE_PATH
        if not isinstance(path, str) or (path and set(path.split("/")) & {"", ".", ".."}):
            self.refuse("spec.modelCacheRef.subPath", path, "it must be a relative path such as models/qwen, or empty")
            return CACHE_PATH
        return path

    def engine(self, rid: str, raw: Mapping[str, Any], path: str) -> Engine:
        name = text(raw, "name")
        if not _ENGINE.fullmatch(name):
            self.refuse(f"{path}.name", name, "lowercase letters, digits and -, starting with a letter, at most 30")
        members = [self.member(m, f"{path}.members[{i}]") for i, m in enumerate(objects(raw, "members"))]
        roles = sorted(m.role for m in members)
        if roles not in ([STANDALONE], [LEADER, WORKER]):
            self.refuse(f"{path}.members", roles, "one Standalone, or one Leader and one Worker")
        port = _or(integer(raw, "http", "port"), PORT)
        if not 1 <= port <= 65535:
            self.refuse(f"{path}.http.port", port, "1 to 65535")
        health = text(raw, "http", "healthPath") or HEALTH_PATH
        if not _PATH.fullmatch(health):
            self.refuse(f"{path}.http.healthPath", health, "a path that starts with / and has no spaces")
        return Engine(
            name=name,
            workload=names.workload(rid, name),
            copies=max(1, _or(integer(raw, "copies"), 1)),
            phase=text(raw, "phase"),
            members=members,
            raw=raw,
            port=port,
            health_path=health,
            startup_timeout_s=max(10, _or(integer(raw, "http", "startupTimeoutSeconds"), STARTUP_TIMEOUT_S)),
        )

    def member(self, raw: Mapping[str, Any], path: str) -> Member:
        spec = f"{path}.template.spec"
        containers = objects(raw, "template", "spec", "containers")
        container = containers[0] if containers else {}
        where = f"{spec}.containers[0]"
        if len(containers) != 1:
            self.refuse(f"{spec}.containers", [text(c, "name") for c in containers], "exactly one, named engine")
        image = text(container, "image")
        if not _IMAGE.fullmatch(image):
            self.refuse(f"{where}.image", image, "an image reference without spaces, at most 1024 characters")
        pool = text(raw, "nodePoolName")
        if not pool or not is_label_value(pool):
            self.refuse(f"{path}.nodePoolName", pool, "the name of a node pool of the cluster")
        capabilities = [c for c in items(container, "securityContext", "capabilities", "add") if isinstance(c, str)]
        if set(capabilities) - {IPC_LOCK}:
            self.refuse(f"{where}.securityContext.capabilities.add", capabilities, f"only {IPC_LOCK}")
        pull = [text(s, "name") for s in objects(raw, "template", "spec", "imagePullSecrets")]
        for index, name in enumerate(pull):
            if not is_dns_subdomain(name):
                self.refuse(f"{spec}.imagePullSecrets[{index}].name", name, "the name of a Secret of this namespace")
        return Member(
            role=text(raw, "role") or STANDALONE,
            pool=pool,
            image=image,
            nodes=max(1, _or(integer(raw, "worker", "nodes"), 1)),
            command=self.words(container, "command", where),
            args=self.words(container, "args", where),
            env=[self.variable(v, f"{where}.env[{i}]") for i, v in enumerate(objects(container, "env"))],
            requests=objects(raw, "deviceRequests"),
            usage={k: v for k, v in mapping(raw, "deviceUsage").items() if isinstance(v, int)},
            labels=self.metadata(raw, "labels", f"{path}.template.metadata.labels"),
            annotations=self.metadata(raw, "annotations", f"{path}.template.metadata.annotations"),
            cpu=self.resource(container, "cpu", where),
            memory=self.resource(container, "memory", where),
            shared_memory=self.quantity(text(container, "sharedMemory"), f"{where}.sharedMemory"),
            capabilities=capabilities,
            pull_secrets=pull,
        )

    def words(self, container: Mapping[str, Any], name: str, path: str) -> list[str]:
        found = items(container, name)
        if not all(isinstance(word, str) for word in found):
            self.refuse(f"{path}.{name}", found, "a list of strings")
        return [word for word in found if isinstance(word, str)]

    def variable(self, raw: Mapping[str, Any], path: str) -> Mapping[str, Any]:
        name = text(raw, "name")
        if not _ENV.fullmatch(name):
            self.refuse(f"{path}.name", name, "printable ASCII without =, at most 256 characters")
        if name.startswith(RESERVED_ENV):
            self.refuse(f"{path}.name", name, "names under MODELPLANE_ and LWS_ are reserved; choose another name")
        for source in ("secretKeyRef", "configMapKeyRef"):
            if source in mapping(raw, "valueFrom"):
                named, key = text(raw, "valueFrom", source, "name"), text(raw, "valueFrom", source, "key")
                if not is_dns_subdomain(named):
                    self.refuse(f"{path}.valueFrom.{source}.name", named, "the name of an object of this namespace")
                if not _KEY.fullmatch(key):
                    self.refuse(f"{path}.valueFrom.{source}.key", key, "letters, digits, -, _ and .")
        return raw

    def metadata(self, raw: Mapping[str, Any], field_: str, path: str) -> dict[str, str]:
        found = strings(raw, "template", "metadata", field_)
        for key, value in found.items():
            if not is_qualified_name(key) or (field_ == "labels" and not is_label_value(value)):
                self.refuse(f"{path}[{key}]", value, f"valid Kubernetes {field_}")
        return {k: v for k, v in found.items() if k.split("/", 1)[0] != GROUP}

    def resource(self, container: Mapping[str, Any], name: str, path: str) -> tuple[str, str]:
        path = f"{path}.resources"
        request = self.quantity(text(container, "resources", "requests", name), f"{path}.requests.{name}")
        limit = self.quantity(text(container, "resources", "limits", name), f"{path}.limits.{name}")
        if request and limit and Quantity.parse(request) > Quantity.parse(limit):
            self.refuse(f"{path}.requests.{name}", request, f"at most the limit, {limit}")
        return request, limit

    def quantity(self, value: str, path: str) -> str:
        if not value:
            return ""
        try:
            if Quantity.parse(value).sign > 0:
                return value
        except QuantityError:
            pass
        self.refuse(path, value, "a positive Kubernetes quantity, such as 500m, 8 or 64Gi")
        return ""


def pool_names(replica: Replica) -> list[str]:
    """Node pools that the replica's pods run on, sorted."""
    return sorted({m.pool for e in replica.engines for m in e.members})


def _or(value: int | None, default: int) -> int:
    return default if value is None else value
