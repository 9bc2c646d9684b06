"""The endpoint picker: which pod answers a request, by the prompts it has cached and the queue it has.

A gateway asks the picker about every request to an InferencePool and answers 5xx while none is there, so the route
points at the pool only while the picker is up. Two run, of which one leads and the other takes over.

Sources: https://github.com/llm-d/llm-d-router/tree/v0.9.0 and
https://github.com/kubernetes-sigs/gateway-api-inference-extension/blob/v1.0.2/api/v1/inferencepool_types.go
"""

import json

from modelplane.kube.objects import Object
from modelplane.labels import POOL, REPLICA, SERVING, WORKLOAD
from modelplane_functions.model_replica.inputs import PICKER_SUFFIX, PREFILL_DECODE, Replica

IMAGE = "ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.9.0"
POOL_GROUP = "inference.networking.k8s.io"
POOL_KIND = "InferencePool"
RBAC = "rbac.authorization.k8s.io"

GRPC_PORT, HEALTH_PORT, METRICS_PORT = 9002, 9003, 9090
REPLICAS = 2
GRACE_S = 130

KEY = "epp"
SERVICE_KEY, POOL_KEY = "epp-service", "pool"
IDENTITY_KEYS = ("epp-account", "epp-binding", "epp-role")
KEYS = (KEY, SERVICE_KEY, POOL_KEY, *IDENTITY_KEYS)

READY = (
    "has(object.status) && has(object.status.observedGeneration) && "
    "object.status.observedGeneration >= object.metadata.generation && "
    "has(object.status.updatedReplicas) && object.status.updatedReplicas == object.spec.replicas && "
    "has(object.status.availableReplicas) && object.status.availableReplicas >= 1"
)
"""Only the leader passes its readiness probe."""


def needed(replica: Replica) -> bool:
    """Whether there is anything to pick: one pod that answers whole requests needs no picker."""
    return replica.pods > 1 or replica.mode == PREFILL_DECODE


def name(replica: Replica) -> str:
    """Name of the picker's objects."""
    return replica.rid + PICKER_SUFFIX


def pool_name(replica: Replica) -> str:
    """Name of the InferencePool."""
    return f"{replica.rid}-pool"


def pool(replica: Replica) -> Object:
    """Build the InferencePool over all serving pods."""
    return {
        "apiVersion": f"{POOL_GROUP}/v1",
        "kind": POOL_KIND,
        "metadata": _metadata(replica, pool_name(replica)),
        "spec": {
            "selector": {"matchLabels": {SERVING: replica.rid}},
            "targetPorts": [{"number": replica.engines[0].port}],
            "endpointPickerRef": {
                "group": "",
                "kind": "Service",
                "name": name(replica),
                "port": {"number": GRPC_PORT},
                "failureMode": "FailClose",
            },
        },
    }


def service(replica: Replica) -> Object:
    """Build the Service that the gateway reaches the picker by."""
    port = {"name": "grpc-ext-proc", "port": GRPC_PORT, "targetPort": GRPC_PORT, "protocol": "TCP"}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(replica, name(replica)),
        "spec": {
            "type": "ClusterIP",
            "selector": {WORKLOAD: name(replica)},
            "ports": [{**port, "appProtocol": "http2"}],
        },
    }


def identity(replica: Replica) -> dict[str, Object]:
    """Build the picker's ServiceAccount, Role and RoleBinding, by composition key; it reads its own namespace only."""
    read = ["get", "list", "watch"]
    objectives = ["inferencemodelrewrites", "inferenceobjectives"]
    rules: list[Object] = [
        {"apiGroups": [""], "resources": ["pods"], "verbs": read},
        {"apiGroups": [POOL_GROUP], "resources": ["inferencepools"], "verbs": read},
        {"apiGroups": ["inference.networking.x-k8s.io", "llm-d.ai"], "resources": objectives, "verbs": read},
        {
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "verbs": ["create", "delete", "get", "list", "patch", "update", "watch"],
        },
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
    ]
    metadata = _metadata(replica, name(replica))
    account = {"kind": "ServiceAccount", "name": name(replica), "namespace": replica.tenant}
    return {
        "epp-account": {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": metadata,
            "automountServiceAccountToken": False,
        },
        "epp-role": {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": rules},
        "epp-binding": {
            "apiVersion": f"{RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": name(replica)},
            "subjects": [account],
        },
    }


def deployment(replica: Replica) -> Object:
    """Build the two pickers.

    The one that does not lead is never ready, so an update that waits for readiness would wait for ever, as would the
    drain of a node under a disruption budget: both pods are replaced at once, and the old ones finish what they have.
    """
    labels = {REPLICA: replica.rid, WORKLOAD: name(replica)}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(replica, name(replica)),
        "spec": {
            "replicas": REPLICAS,
            "revisionHistoryLimit": 2,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "100%", "maxUnavailable": "100%"}},
            "selector": {"matchLabels": {WORKLOAD: name(replica)}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "serviceAccountName": name(replica),
                    "automountServiceAccountToken": True,
                    "enableServiceLinks": False,
                    "terminationGracePeriodSeconds": GRACE_S,
                    "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
                    "affinity": _affinity(labels),
                    "containers": [_container(replica)],
                },
            },
        },
    }


def _affinity(labels: dict[str, str]) -> Object:
    """Prefer nodes that are in no pool of devices, and not both pickers on one."""
    apart = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": labels}}
    outside = {"matchExpressions": [{"key": POOL, "operator": "DoesNotExist"}]}
    soft = "preferredDuringSchedulingIgnoredDuringExecution"
    return {
        "podAntiAffinity": {soft: [{"weight": 100, "podAffinityTerm": apart}]},
        "nodeAffinity": {soft: [{"weight": 100, "preference": outside}]},
    }


def _container(replica: Replica) -> Object:
    def probe(service_name: str, period: int, failures: int) -> Object:
        grpc = {"port": HEALTH_PORT, "service": service_name}
        return {"grpc": grpc, "periodSeconds": period, "timeoutSeconds": 5, "failureThreshold": failures}

    def downward(field: str) -> Object:
        return {"fieldRef": {"fieldPath": field}}

    return {
        "name": "epp",
        "image": IMAGE,
        "args": [
            f"--pool-name={pool_name(replica)}",
            f"--pool-namespace={replica.tenant}",
            f"--pool-group={POOL_GROUP}",
            f"--config-text={json.dumps(config(replica), separators=(',', ':'))}",
            f"--grpc-port={GRPC_PORT}",
            f"--grpc-health-port={HEALTH_PORT}",
            f"--metrics-port={METRICS_PORT}",
            "--metrics-endpoint-auth=false",
            "--enable-pprof=false",
            "--tracing=false",
            "--zap-encoder=json",
            "--ha-enable-leader-election",
        ],
        "env": [
            {"name": "NAMESPACE", "valueFrom": downward("metadata.namespace")},
            {"name": "POD_NAME", "valueFrom": downward("metadata.name")},
        ],
        "ports": [
            {"name": "grpc", "containerPort": GRPC_PORT, "protocol": "TCP"},
            {"name": "grpc-health", "containerPort": HEALTH_PORT, "protocol": "TCP"},
            {"name": "metrics", "containerPort": METRICS_PORT, "protocol": "TCP"},
        ],
        "livenessProbe": probe("liveness", 10, 3),
        "readinessProbe": probe("readiness", 2, 3),
        "resources": {"requests": {"cpu": "1", "memory": "2Gi"}, "limits": {"memory": "8Gi"}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }


def config(replica: Replica) -> Object:
    """Build the picker's EndpointPickerConfig; it travels as an argument, so no ConfigMap and no checksum is needed."""
    scorers: list[Object] = [
        {"pluginRef": "max-score-picker"},
        {"pluginRef": "prefix-cache-scorer", "weight": 2},
        {"pluginRef": "queue-scorer", "weight": 1},
    ]
    plugins: list[Object] = [
        {
            "type": "approx-prefix-cache-producer",
            "parameters": {"maxPrefixTokensToMatch": 16384, "lruCapacityPerServer": 31250},
        },
        {"type": "prefix-cache-scorer"},
        {"type": "queue-scorer"},
        {"type": "max-score-picker"},
    ]
    if replica.mode == PREFILL_DECODE:
        decider = "prefix-based-pd-decider"
        plugins += [
            {"type": "prefill-filter"},
            {"type": "decode-filter"},
            {"type": decider, "parameters": {"nonCachedTokens": 16}},
            {"type": "disagg-profile-handler", "parameters": {"deciders": {"prefill": decider}}},
        ]
        profiles = [
            {"name": phase, "plugins": [{"pluginRef": f"{phase}-filter"}, *scorers]} for phase in ("prefill", "decode")
        ]
    else:
        plugins.append({"type": "single-profile-handler"})
        profiles = [{"name": "default", "plugins": scorers}]
    return {
        "apiVersion": "llm-d.ai/v1alpha1",
        "kind": "EndpointPickerConfig",
        "plugins": plugins,
        "schedulingProfiles": profiles,
    }


def _metadata(replica: Replica, named: str) -> Object:
    return {"name": named, "namespace": replica.tenant, "labels": {REPLICA: replica.rid}}
