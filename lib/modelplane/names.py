"""Names of composed objects: short, stable, unique, legal.

Every formula here is a promise: a changed name is a deleted and re-created object. `tests/lib/test_names.py` holds
golden vectors.
"""

import base64
import hashlib
import re

REPLICA_MAX = 40
WORKLOAD_MAX = 45
"""A LeaderWorkerSet's StatefulSet carries its name plus 11 characters in a label of at most 63."""
BACKEND_MAX = 52

_ILLEGAL = re.compile(r"[^a-z0-9-]")


def digest(*parts: str, size: int = 10) -> str:
    """Hash parts into lowercase base32.

    Each part is preceded by its length, so ("a-b", "c") and ("a", "b-c") differ. The first part names the kind of
    thing, so that two kinds never share an input.
    """
    payload = b"".join(len(p.encode()).to_bytes(4, "big") + p.encode() for p in ("v1", *parts))
    return base64.b32encode(hashlib.sha256(payload).digest()).decode().lower()[:size]


def name(visible: str, *parts: str, limit: int) -> str:
    """Build a DNS-1035 label: a readable start, a dash and a hash of `parts`, at most `limit` characters."""
    clean = _ILLEGAL.sub("-", visible.lower())
    if not clean[:1].isalpha():
        clean = "m" + clean
    return clean[: limit - 11].rstrip("-") + "-" + digest(*parts)


def replica(namespace: str, deployment: str, cluster: str, index: int) -> str:
    """Name of a ModelReplica and of its ModelEndpoint; unique across namespaces, at most 40 characters."""
    return name(deployment, "replica", namespace, deployment, cluster, str(index), limit=REPLICA_MAX)


def replica_id(namespace: str, replica_name: str) -> str:
    """Base of every remote name of a replica: its own name, or a shortened one where that is too long."""
    if len(replica_name) <= REPLICA_MAX and _dns1035(replica_name):
        return replica_name
    return name(replica_name, "rid", namespace, replica_name, limit=REPLICA_MAX)


def workload(rid: str, engine: str) -> str:
    """Name of an engine's Deployment or LeaderWorkerSet, at most 45 characters."""
    return name(f"{rid[:20].rstrip('-')}-{engine}", "engine", rid, engine, limit=WORKLOAD_MAX)


def backend(namespace: str, endpoint: str) -> str:
    """Name of the Service on the control plane that stands for a ModelEndpoint, at most 52 characters."""
    return name(endpoint, "backend", namespace, endpoint, limit=BACKEND_MAX)


def retry(namespace: str, service: str) -> str:
    """Name of the Traefik Middleware of a ModelService, at most 52 characters."""
    return name(service, "retry", namespace, service, limit=BACKEND_MAX)


def tenant_digest(namespace: str) -> str:
    """Value of the tenant label on a workload cluster."""
    return digest("ns", namespace)


def tenant_namespace(namespace: str) -> str:
    """Namespace on a workload cluster that belongs to one namespace of the control plane."""
    return "mp-" + name(namespace, "ns", namespace, limit=49)


def child(*parts: str) -> str:
    """Name of a cluster-side child: the joined parts cut to 57 characters, a dash and five hex digits of their SHA-256.

    The formula is the one that existing fleets use, so their objects keep their names.
    """
    full = "-".join(parts)
    return f"{full[:57].rstrip('-')}-{hashlib.sha256(full.encode()).hexdigest()[:5]}"


def _dns1035(value: str) -> bool:
    return re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", value) is not None
