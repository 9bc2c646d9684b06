"""Which zone and which address range each subnet has. Once made, a subnet never changes either."""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass

from modelplane.kube.objects import Resource
from modelplane_functions.eks_cluster.inputs import Spec

_LETTERS = {"ap-northeast-1": "acd", "ca-central-1": "abd", "us-west-1": ""}
"""Zone letters that accounts commonly have, where they are not a, b, c. us-west-1 gives every account other letters."""

MINIMUM = 2
"""EKS refuses a control plane in fewer than two zones."""


@dataclass(frozen=True)
class Subnet:
    """The pair of subnets at one index: a public and a private one in the same zone."""

    index: int
    zone: str
    public: str
    private: str


class NetworkingError(ValueError):
    """The networking block cannot be laid out; the message says what to change."""


def _network(cidr: str, field: str) -> ipaddress.IPv4Network:
    try:
        network = ipaddress.IPv4Network(cidr)
    except ValueError as error:
        message = f"{field} {cidr} is not an IPv4 range: {error}; write the network's own address, such as 10.0.0.0/16"
        raise NetworkingError(message) from error
    if not 16 <= network.prefixlen <= 28:
        message = f"{field} {cidr} must have a prefix from /16 to /28"
        raise NetworkingError(message)
    return network


def _zones(spec: Spec, live: Mapping[int, str]) -> list[str]:
    """Zones by index: live ones stay, then the explicit list, or those that pools name and the region's usual ones."""
    if spec.zones:
        _check(spec)
        for index, zone in sorted(live.items()):
            if index >= len(spec.zones) or spec.zones[index] != zone:
                message = f"networking.zones[{index}] must stay {zone}, where the subnet is; append new zones after it"
                raise NetworkingError(message)
        return list(spec.zones)
    wanted = sorted({z for p in spec.pools for z in p.zones if z.startswith(spec.region)})
    usual = [spec.region + letter for letter in _LETTERS.get(spec.region, "abc")]
    further = [z for z in dict.fromkeys((*wanted, *usual)) if z not in live.values()]
    chosen: list[str] = []
    while len(chosen) < len(spec.subnet_cidrs) and (len(chosen) in live or further):
        chosen.append(live[len(chosen)] if len(chosen) in live else further.pop(0))
    if len(chosen) < MINIMUM:
        message = f"region {spec.region} needs networking.zones: at least two zones that your account has there"
        raise NetworkingError(message)
    return chosen


def _check(spec: Spec) -> None:
    if not MINIMUM <= len(spec.zones) <= len(spec.subnet_cidrs):
        message = (
            f"networking.zones names {len(spec.zones)} zones; it must name from {MINIMUM} to as many as "
            f"networking.subnetCidrs has ranges, {len(spec.subnet_cidrs)}"
        )
        raise NetworkingError(message)
    for index, zone in enumerate(spec.zones):
        if not zone.startswith(spec.region):
            raise NetworkingError(f"networking.zones[{index}] {zone} is not in region {spec.region}")
        if zone in spec.zones[:index]:
            raise NetworkingError(f"networking.zones[{index}] repeats {zone}")


def _live_zone(index: int, observed: Mapping[str, Resource]) -> str:
    """Zone of the pair of subnets at an index, empty where neither exists."""
    found = [observed[key] for key in (f"subnet-{index}", f"private-subnet-{index}") if key in observed]
    return next(filter(None, (subnet.text("spec", "forProvider", "availabilityZone") for subnet in found)), "")


def _live_private(index: int, observed: Mapping[str, Resource]) -> ipaddress.IPv4Network | None:
    private = observed.get(f"private-subnet-{index}")
    try:
        return ipaddress.IPv4Network(private.text("spec", "forProvider", "cidrBlock")) if private is not None else None
    except ValueError:
        return None


def plan(spec: Spec, observed: Mapping[str, Resource]) -> list[Subnet]:
    """Lay out the subnets.

    Raises NetworkingError with a message for the user.
    """
    live: dict[int, str] = {}
    live_private: dict[int, ipaddress.IPv4Network] = {}
    for index in range(len(spec.subnet_cidrs)):
        zone, private = _live_zone(index, observed), _live_private(index, observed)
        if zone:
            live[index] = zone
        if private is not None:
            live_private[index] = private

    zones = _zones(spec, live)
    vpc = _network(spec.vpc_cidr, "networking.vpcCidr")
    public_networks = _public(spec, vpc, live_private)
    taken = [*public_networks, *live_private.values()]
    subnets = []
    for index, zone in enumerate(zones):
        found = live_private.get(index)
        if found is None:
            found = _free(vpc, public_networks[index].prefixlen, taken, after=max(public_networks))
            if found is None:
                message = (
                    f"networking.vpcCidr {spec.vpc_cidr} has no room for a private subnet of the size of "
                    f"{public_networks[index]}; use a larger vpcCidr or smaller subnetCidrs"
                )
                raise NetworkingError(message)
            taken.append(found)
        subnets.append(Subnet(index, zone, spec.subnet_cidrs[index], str(found)))
    return subnets


def _public(
    spec: Spec, vpc: ipaddress.IPv4Network, live_private: Mapping[int, ipaddress.IPv4Network]
) -> list[ipaddress.IPv4Network]:
    networks: list[ipaddress.IPv4Network] = []
    for index, cidr in enumerate(spec.subnet_cidrs):
        field = f"networking.subnetCidrs[{index}]"
        network = _network(cidr, field)
        if not network.subnet_of(vpc):
            raise NetworkingError(f"{field} {cidr} is outside networking.vpcCidr {spec.vpc_cidr}")
        for other in networks:
            if network.overlaps(other):
                raise NetworkingError(f"{field} {cidr} overlaps {other}; choose ranges that do not")
        for other_index, private in sorted(live_private.items()):
            if network.overlaps(private):
                raise NetworkingError(f"{field} {cidr} overlaps private subnet {other_index}, {private}")
        networks.append(network)
    return networks


def _free(
    vpc: ipaddress.IPv4Network, prefix: int, taken: list[ipaddress.IPv4Network], after: ipaddress.IPv4Network
) -> ipaddress.IPv4Network | None:
    if prefix < vpc.prefixlen:
        return None
    size = 1 << (32 - prefix)
    start = int(vpc.network_address)
    end = int(vpc.broadcast_address) + 1
    border = int(after.broadcast_address) + 1
    first = start + -(-(border - start) // size) * size
    for address in (*range(first, end, size), *range(start, min(first, end), size)):
        candidate = ipaddress.IPv4Network((address, prefix))
        if not any(candidate.overlaps(other) for other in taken):
            return candidate
    return None
