"""The VPC network and its one subnetwork, with ranges for nodes, pods and Services."""

import ipaddress

from modelplane.composed.managed import matching
from modelplane_functions.gke_cluster.desk import COMPUTE, NAME_MAX, Desk
from modelplane_functions.gke_cluster.inputs import Spec

PODS, SERVICES = "pods", "services"
"""Names of the secondary ranges."""


def problem(spec: Spec) -> str:
    """Say what is wrong with the ranges; empty where nothing is."""
    known: list[tuple[str, ipaddress.IPv4Network]] = []
    for field, cidr in ranges(spec).items():
        try:
            network = ipaddress.IPv4Network(cidr)
        except ValueError as error:
            return f"{field} {cidr} is not an IPv4 range: {error}; write its own address, such as 10.0.0.0/24"
        for other, taken in known:
            if network.overlaps(taken):
                return f"{field} {cidr} overlaps {other} {taken}; choose ranges that do not"
        known.append((field, network))
    return ""


def ranges(spec: Spec) -> dict[str, str]:
    """Ranges by field."""
    return {
        "networking.nodeCidr": spec.node_cidr,
        "networking.podCidr": spec.pod_cidr,
        "networking.serviceCidr": spec.service_cidr,
    }


def compose(desk: Desk) -> None:
    """Compose the network."""
    desk.add(
        "network",
        desk.gcp(
            "network",
            COMPUTE,
            "Network",
            {"autoCreateSubnetworks": False},
            external_name=desk.cloud_name("network", desk.spec.name, NAME_MAX),
        ),
    )
    subnet = {
        "region": desk.spec.region,
        "networkSelector": matching(),
        "ipCidrRange": desk.spec.node_cidr,
        "secondaryIpRange": [
            {"rangeName": PODS, "ipCidrRange": desk.spec.pod_cidr},
            {"rangeName": SERVICES, "ipCidrRange": desk.spec.service_cidr},
        ],
        "privateIpGoogleAccess": True,
    }
    name = desk.cloud_name("subnet", desk.spec.name, NAME_MAX)
    desk.add("subnet", desk.gcp("subnet", COMPUTE, "Subnetwork", subnet, external_name=name))
