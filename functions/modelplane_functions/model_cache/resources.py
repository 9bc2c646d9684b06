"""Objects that stage an artifact on one cluster."""

from __future__ import annotations

import json
from functools import lru_cache

from modelplane import names
from modelplane.composed import ABANDON, FULL, KEEP, OBSERVE, SUCCESSFUL_CREATE, ProviderConfigRef, remote_object
from modelplane.composed import tenant as tenants
from modelplane.composed.usage import PROTECTION
from modelplane.kube.objects import Object, Resource, mapping, text
from modelplane.kube.quantity import Quantity, QuantityError
from modelplane.labels import CACHE, POOL, VERSION
from modelplane_functions.model_cache.inputs import REHYDRATE, Cache, Cluster
from modelplane_functions.model_cache.keys import TEMPLATE_SIZE

IMAGE = "ghcr.io/modelplane/hydrator:v0.1.0"
"""Built from package/hydrator."""
MOUNT = "/mnt/artifact"
USER = 65532
DEADLINE_SECONDS = 6 * 3600
RETRIES = 6

REFUSED, FULL_VOLUME = 64, 73
"""Exit codes of the hydrator that no retry can change; package/hydrator says what each means."""

CLAIM_READY = 'has(object.status) && has(object.status.phase) && object.status.phase == "Bound"'
JOB_READY = (
    "has(object.status) && has(object.status.conditions) && "
    'object.status.conditions.exists(c, c.type == "Complete" && c.status == "True")'
)


def namespace(cache: Cache, cluster: Cluster) -> Object:
    """Build the tenant's namespace, which is never deleted: replicas are in it too."""
    manifest = tenants.namespace(cache.namespace, cluster.pod_security)
    return _wrap(cache, cluster, manifest, retained=True)


def secret(cache: Cache, cluster: Cluster) -> Object:
    """Build the copy of the token, by reference: its value never passes through here."""
    manifest: Object = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": secret_name(cache), "namespace": cache.tenant},
        "type": "Opaque",
    }
    patch = tenants.secret_key(cache.namespace, cache.secret, cache.secret_key)
    return remote_object(
        manifest,
        ProviderConfigRef(cluster.config),
        namespace=cache.namespace,
        policies=policies(cluster),
        patches=[patch],
    )


def secret_name(cache: Cache) -> str:
    """Name of the copy on a workload cluster."""
    return names.name(cache.name, "cache-secret", cache.namespace, cache.name, limit=50)


def claim(cache: Cache, cluster: Cluster, observed: Resource | None) -> Object:
    """Build the claim on shared storage; an observed one keeps its class, and its size where that is larger."""
    before = mapping(observed.spec if observed else {}, "forProvider", "manifest")
    size = f"{cache.size_gib}Gi"
    held = text(before, "spec", "resources", "requests", "storage")
    if held and _larger(held, size):
        size = held
    manifest: Object = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": cache.claim(cache.artifact),
            "namespace": cache.tenant,
            "labels": {CACHE: cache.artifact},
        },
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "storageClassName": text(before, "spec", "storageClassName") or cluster.storage_class,
            "resources": {"requests": {"storage": size}},
        },
    }
    return _wrap(cache, cluster, manifest, retained=cache.retained, readiness=CLAIM_READY)


def existing_claim(cache: Cache, cluster: Cluster) -> Object:
    """Look at the user's own claim; nothing of it is ever changed or deleted."""
    manifest: Object = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": cache.claim_name, "namespace": cache.tenant},
    }
    return remote_object(
        manifest,
        ProviderConfigRef(cluster.config),
        namespace=cache.namespace,
        policies=OBSERVE,
        readiness=CLAIM_READY,
    )


def shrinks(cache: Cache, observed: Resource) -> bool:
    """Whether an observed claim is larger than the spec asks for."""
    held = text(observed.spec, "forProvider", "manifest", "spec", "resources", "requests", "storage")
    return bool(held) and _larger(held, f"{cache.size_gib}Gi")


def _larger(held: str, wanted: str) -> bool:
    try:
        return Quantity.parse(held) > Quantity.parse(wanted)
    except QuantityError:
        return False


@lru_cache(maxsize=1)
def template_id(cache: Cache) -> str:
    """Identity of what the Job runs and of what may have made it fail: another one is another Job."""
    payload = json.dumps(_template(cache), sort_keys=True)
    parts = (payload, str(cache.size_gib), cache.secret, cache.rehydrate)
    return names.digest("hydrate", *parts, size=TEMPLATE_SIZE)


def job(cache: Cache, cluster: Cluster) -> Object:
    """Build the Job that fetches the artifact into the claim; it stays as the record of having done so."""
    name = names.name(cache.name, "hydrate", cache.namespace, cache.name, cache.artifact, template_id(cache), limit=50)
    failure_policy = {
        "rules": [
            {
                "action": "FailJob",
                "onExitCodes": {
                    "containerName": "hydrate",
                    "operator": "In",
                    "values": [REFUSED, FULL_VOLUME],
                },
            },
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        ]
    }
    metadata: Object = {"name": name, "namespace": cache.tenant, "labels": {CACHE: cache.artifact}}
    if cache.rehydrate:
        metadata["annotations"] = {REHYDRATE: cache.rehydrate}
    manifest: Object = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {
            "backoffLimit": RETRIES,
            "activeDeadlineSeconds": DEADLINE_SECONDS,
            "podReplacementPolicy": "Failed",
            "podFailurePolicy": failure_policy,
            "template": _template(cache),
        },
    }
    return _wrap(cache, cluster, manifest, readiness=JOB_READY)


def rehydrate_of(observed: Resource) -> str:
    """The value of the rehydrate annotation that an observed Job was made for."""
    return text(observed.spec, "forProvider", "manifest", "metadata", "annotations", REHYDRATE)


def _template(cache: Cache) -> Object:
    arguments = ["huggingface", f"--repo={cache.repo}", f"--revision={cache.revision}"]
    arguments += [f"--include={pattern}" for pattern in sorted(set(cache.include))]
    arguments += [f"--dest={MOUNT}", f"--id={cache.artifact}"]
    if cache.rehydrate:
        arguments.append("--verify=hashes")
    container: Object = {
        "name": "hydrate",
        "image": IMAGE,
        "command": ["/hydrate"],
        "args": arguments,
        "resources": {"requests": {"cpu": "1", "memory": "2Gi"}, "limits": {"memory": "8Gi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "artifact", "mountPath": MOUNT}, {"name": "scratch", "mountPath": "/tmp"}],  # noqa: S108
    }
    if cache.secret:
        source = {"secretKeyRef": {"name": secret_name(cache), "key": cache.secret_key}}
        container["env"] = [{"name": "HF_TOKEN", "valueFrom": source}]
    elsewhere = {"matchExpressions": [{"key": POOL, "operator": "DoesNotExist"}]}
    return {
        "metadata": {"labels": {CACHE: cache.artifact}},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "affinity": {
                "nodeAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": elsewhere}]
                }
            },
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": USER,
                "runAsGroup": USER,
                "fsGroup": USER,
                "fsGroupChangePolicy": "OnRootMismatch",
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [container],
            "volumes": [
                {"name": "artifact", "persistentVolumeClaim": {"claimName": cache.claim(cache.artifact)}},
                {"name": "scratch", "emptyDir": {}},
            ],
        },
    }


def usage(cache: Cache, reason: str) -> Object:
    """Build the guard that refuses to delete the cache, and says why."""
    return {
        "apiVersion": PROTECTION,
        "kind": "Usage",
        "metadata": {"namespace": cache.namespace},
        "spec": {
            "of": {"apiVersion": VERSION, "kind": "ModelCache", "resourceRef": {"name": cache.name}},
            "reason": reason,
            "replayDeletion": False,
        },
    }


def policies(cluster: Cluster, *, retained: bool = False) -> tuple[str, ...]:
    """Management policies of what a cache has on a cluster."""
    if cluster.abandoned:
        return ABANDON
    return KEEP if retained else FULL


def _wrap(
    cache: Cache, cluster: Cluster, manifest: Object, *, retained: bool = False, readiness: str = SUCCESSFUL_CREATE
) -> Object:
    return remote_object(
        manifest,
        ProviderConfigRef(cluster.config),
        namespace=cache.namespace,
        policies=policies(cluster, retained=retained),
        readiness=readiness,
    )
