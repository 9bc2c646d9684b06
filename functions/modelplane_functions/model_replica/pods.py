"""Pod templates of an engine's members.

Nothing here passes through a shell: command and args are the user's words, one by one.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from modelplane.kube.objects import Object, integer, text
from modelplane.kube.quantity import Quantity
from modelplane.labels import ENGINE, FRACTIONAL, POOL, REPLICA, SERVING, WORKLOAD
from modelplane_functions.model_replica import disaggregation, tenancy
from modelplane_functions.model_replica.inputs import DECODE, PREFILL_DECODE, STANDALONE, Engine, Member, Replica
from modelplane_functions.model_replica.target import Pool, Target

CONTAINER = "engine"
PORT_NAME = "http"
"""Where requests arrive: at the engine, or at the proxy before it."""
ENGINE_PORT_NAME = "engine"
CLAIM = "devices"
MODEL_PATH = "/mnt/models"
MODEL_ARG = "--model"

PRE_STOP_S = 30
"""A pod keeps answering this long after it was asked to leave, until every gateway has forgotten it."""
DEFAULT_CPU = "1"
DEFAULT_MEMORY = "4Gi"
DEFAULT_SHARED_MEMORY = "16Gi"

PROBE_PERIOD_S = 10

DEVICE_TAINTS = {
    "gpu.nvidia.com": "nvidia.com/gpu",
    "gpu.amd.com": "amd.com/gpu",
    "tpu.google.com": "google.com/tpu",
}
"""Taints that clouds put on nodes with devices, by DRA driver."""

STANDALONE_ENV = {"MODELPLANE_LEADER_ADDRESS": "localhost", "MODELPLANE_RANK": "0", "MODELPLANE_GROUP_SIZE": "1"}
GANG_ENV = {
    "MODELPLANE_LEADER_ADDRESS": "$(LWS_LEADER_ADDRESS)",
    "MODELPLANE_RANK": "$(LWS_WORKER_INDEX)",
    "MODELPLANE_GROUP_SIZE": "$(LWS_GROUP_SIZE)",
}
"""LeaderWorkerSet puts its own variables before these, so the references resolve."""


@dataclass(frozen=True)
class Pods:
    """What a member's pods are built from; `claim` names their ResourceClaimTemplate, empty for none."""

    replica: Replica
    engine: Engine
    member: Member
    target: Target
    claim: str

    @property
    def behind_proxy(self) -> bool:
        """Whether requests reach the engine through a proxy in its pod."""
        return self.replica.mode == PREFILL_DECODE and self.engine.phase == DECODE and self.member.serves

    @property
    def pool(self) -> Pool:
        """The pool they run on; an empty one where the cluster does not publish it."""
        return self.target.pools.get(self.member.pool, Pool())


def template(pods: Pods) -> Object:
    """Build the pod template of a member."""
    labels = {**pods.member.labels, **_labels(pods)}
    metadata: Object = {"labels": labels}
    if pods.member.annotations:
        metadata["annotations"] = dict(pods.member.annotations)
    spec: Object = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": _grace_s(pods),
        "nodeSelector": {POOL: pods.member.pool},
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [_container(pods)],
        "volumes": _volumes(pods),
    }
    tolerations = _tolerations(pods)
    if tolerations:
        spec["tolerations"] = tolerations
    if pods.claim:
        spec["resourceClaims"] = [{"name": CLAIM, "resourceClaimTemplateName": pods.claim}]
    if pods.member.pull_secrets:
        spec["imagePullSecrets"] = [
            {"name": tenancy.remote_name(pods.replica.rid, tenancy.PULL_SECRET, name)}
            for name in pods.member.pull_secrets
        ]
    if pods.behind_proxy:
        spec["initContainers"] = [disaggregation.proxy(pods.engine, PORT_NAME)]
    if fractional(pods):
        spec.update(_packing(pods))
    return {"metadata": metadata, "spec": spec}


def _labels(pods: Pods) -> dict[str, str]:
    labels = {
        REPLICA: pods.replica.rid,
        WORKLOAD: pods.engine.workload,
        ENGINE: pods.engine.name,
        POOL: pods.member.pool,
    }
    if pods.member.serves:
        labels[SERVING] = pods.replica.rid
        if pods.replica.mode == PREFILL_DECODE:
            labels[disaggregation.ROLE] = disaggregation.role(pods.engine)
    if fractional(pods):
        labels[FRACTIONAL] = "true"
    return labels


def _container(pods: Pods) -> Object:
    member = pods.member
    container: Object = {"name": CONTAINER, "image": member.image}
    if member.command:
        container["command"] = list(member.command)
    args = _args(pods)
    if args:
        container["args"] = args
    ours = STANDALONE_ENV if member.role == STANDALONE else GANG_ENV
    container["env"] = [
        *({"name": name, "value": value} for name, value in ours.items()),
        *(disaggregation.environment(member) if pods.replica.mode == PREFILL_DECODE else ()),
        *(tenancy.environment(pods.replica.rid, variable) for variable in member.env),
    ]
    container["resources"] = _resources(pods)
    capabilities: Object = {"drop": ["ALL"]}
    if member.capabilities:
        capabilities["add"] = sorted(member.capabilities)
    container["securityContext"] = {"allowPrivilegeEscalation": False, "capabilities": capabilities}
    mounts: list[Object] = [{"name": "dshm", "mountPath": "/dev/shm"}]  # noqa: S108
    if pods.replica.cache_claim:
        mount: Object = {"name": "model-cache", "mountPath": MODEL_PATH, "readOnly": True}
        if pods.replica.cache_path:
            mount["subPath"] = pods.replica.cache_path
        mounts.append(mount)
    container["volumeMounts"] = mounts
    if member.serves:
        name, port = PORT_NAME, pods.engine.port
        if pods.behind_proxy:
            name, port = ENGINE_PORT_NAME, disaggregation.ENGINE_PORT
        container["ports"] = [{"name": name, "containerPort": port, "protocol": "TCP"}]
        container.update(_probes(pods.engine, name))
    container["lifecycle"] = {"preStop": {"sleep": {"seconds": PRE_STOP_S if member.serves else _grace_s(pods)}}}
    return container


def _grace_s(pods: Pods) -> int:
    """How long a pod may take to leave; a worker stays all that time, as its leader's requests need it."""
    return PRE_STOP_S + pods.replica.drain_s


def _args(pods: Pods) -> list[str]:
    args = disaggregation.args(pods.member) if pods.behind_proxy else list(pods.member.args)
    named = any(a == MODEL_ARG or a.startswith(f"{MODEL_ARG}=") for a in args)
    if pods.replica.cache_claim and pods.member.serves and not pods.member.command and not named:
        args.append(f"{MODEL_ARG}={MODEL_PATH}")
    return args


def _probes(engine: Engine, port: str) -> Object:
    """The startup probe gives a model time to load; until it passes, the liveness probe does not run."""
    get = {"httpGet": {"path": engine.health_path, "port": port}}
    return {
        "startupProbe": {
            **get,
            "periodSeconds": PROBE_PERIOD_S,
            "timeoutSeconds": 5,
            "failureThreshold": -(-engine.startup_timeout_s // PROBE_PERIOD_S),
        },
        "readinessProbe": {**get, "periodSeconds": 5, "timeoutSeconds": 5, "failureThreshold": 3},
        "livenessProbe": {**get, "periodSeconds": 20, "timeoutSeconds": 10, "failureThreshold": 6},
    }


def _resources(pods: Pods) -> Object:
    requests: Object = {}
    limits: Object = {}
    for name, (request, limit), default in (
        ("cpu", pods.member.cpu, DEFAULT_CPU),
        ("memory", pods.member.memory, DEFAULT_MEMORY),
    ):
        requests[name] = request or _least(default, limit)
        if limit:
            limits[name] = limit
    found: Object = {"requests": requests}
    if limits:
        found["limits"] = limits
    if pods.claim:
        found["claims"] = [{"name": CLAIM}]
    return found


def _volumes(pods: Pods) -> list[Object]:
    size = pods.member.shared_memory or _shared_memory(pods.member.memory[1])
    volumes: list[Object] = [{"name": "dshm", "emptyDir": {"medium": "Memory", "sizeLimit": size}}]
    if pods.replica.cache_claim:
        claim = {"claimName": pods.replica.cache_claim, "readOnly": True}
        volumes.append({"name": "model-cache", "persistentVolumeClaim": claim})
    return volumes


def _shared_memory(limit: str) -> str:
    """Half of the memory limit at most: what lies in shared memory counts against it."""
    whole = Quantity.parse(limit).integer if limit else None
    return DEFAULT_SHARED_MEMORY if whole is None else _least(DEFAULT_SHARED_MEMORY, str(max(1, whole // 2)))


def _least(value: str, other: str) -> str:
    return other if other and Quantity.parse(other) < Quantity.parse(value) else value


def _tolerations(pods: Pods) -> list[Object]:
    drivers: set[str] = set()
    for raw in pods.member.requests:
        device_class = text(raw, "deviceClassName")
        drivers.update(pods.pool.drivers.get(device_class, (device_class,)))
    found: list[Object] = [
        {"key": DEVICE_TAINTS[driver], "operator": "Exists", "effect": "NoSchedule"}
        for driver in sorted(drivers)
        if driver in DEVICE_TAINTS
    ]
    for taint in pods.pool.taints:
        same: Object = {"key": taint.key, "operator": "Equal", "value": taint.value, "effect": taint.effect}
        if not taint.value:
            same = {"key": taint.key, "operator": "Exists", "effect": taint.effect}
        if same not in found:
            found.append(same)
    return found


def fractional(pods: Pods) -> bool:
    """Whether a pod leaves units of a device it uses for other pods of the node."""
    return any(0 < units < pods.pool.units.get(entry, 0) for entry, units in _usage(pods).items())


def _usage(pods: Pods) -> Mapping[str, int]:
    if pods.member.usage:
        return pods.member.usage
    only = list(pods.pool.units)
    if len(only) != 1:
        return {}
    return {only[0]: sum(integer(raw, "count") or 1 for raw in pods.member.requests)}


def _packing(pods: Pods) -> Object:
    """Ask the scheduler to fill nodes: its DRA plugin does not score, and its default is to spread.

    The constraint has one domain, so all it does is to switch off the default spreading.
    """
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "namespaceSelector": {},
        "labelSelector": {
            "matchExpressions": [
                {"key": POOL, "operator": "In", "values": [pods.member.pool]},
                {"key": FRACTIONAL, "operator": "Exists"},
            ]
        },
    }
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {
        "affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}},
        "topologySpreadConstraints": [
            {
                "maxSkew": 1000,
                "topologyKey": POOL,
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {REPLICA: pods.replica.rid}},
            }
        ],
    }
