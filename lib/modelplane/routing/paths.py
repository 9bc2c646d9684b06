"""The path of a request, hop by hop.

A client asks `/<service namespace>/<service>/v1/...`; the control-plane gateway rewrites that prefix to the replica's,
`/<namespace>/<replica>/v1/...`; the workload gateway rewrites the replica's prefix to `/`, so an engine sees `/v1/...`.
"""

import ipaddress

API = "v1"
"""The OpenAI-compatible root that every engine serves and every endpoint URL ends with."""
ENGINE = "/"


def service(namespace: str, name: str) -> str:
    """Public prefix of a ModelService, without a trailing slash as Gateway API matches prefixes by segment."""
    return f"/{namespace}/{name}"


def replica(namespace: str, rid: str) -> str:
    """Prefix of a replica on its cluster's gateway, with a trailing slash; `rid` is `names.replica_id`."""
    return f"/{namespace}/{rid}/"


def authority(address: str, port: int | None = None) -> str:
    """Host part of a URL: IPv6 addresses get their brackets."""
    try:
        host = f"[{address}]" if ipaddress.ip_address(address).version == 6 else address
    except ValueError:
        host = address
    return f"{host}:{port}" if port else host


def endpoint_url(address: str, namespace: str, rid: str, scheme: str = "http") -> str:
    """URL of a replica as a ModelEndpoint carries it."""
    return f"{scheme}://{authority(address)}{replica(namespace, rid)}{API}"


def service_url(address: str, namespace: str, name: str, scheme: str = "http") -> str:
    """URL of a ModelService; a client appends `/v1/...`."""
    return f"{scheme}://{authority(address)}{service(namespace, name)}"
