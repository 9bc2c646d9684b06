"""Addresses that no machine has: those that documents and benchmarks may use (RFC 5737, RFC 2544)."""

import hashlib
import ipaddress

CONTROL_PLANE = "192.0.2.10"
_CLUSTERS = (ipaddress.ip_network("203.0.113.0/24"), ipaddress.ip_network("198.18.0.0/15"))


class Addresses:
    """Gives each workload cluster an address: by a hash of its name, or the next free one where that is taken."""

    def __init__(self) -> None:
        self._by_cluster: dict[str, str] = {}
        self._taken: set[str] = set()

    def of(self, cluster: str) -> str:
        """The address of a cluster's gateway."""
        if cluster not in self._by_cluster:
            address = self._pick(cluster)
            self._by_cluster[cluster] = address
            self._taken.add(address)
        return self._by_cluster[cluster]

    def _pick(self, cluster: str) -> str:
        seed = int.from_bytes(hashlib.sha256(cluster.encode()).digest()[:8], "big")
        for network in _CLUSTERS:
            hosts = network.num_addresses - 2
            if sum(1 for a in self._taken if ipaddress.ip_address(a) in network) >= hosts:
                continue
            for step in range(hosts):
                address = str(network[1 + (seed + step) % hosts])
                if address not in self._taken:
                    return address
        raise ValueError("more clusters than addresses")
