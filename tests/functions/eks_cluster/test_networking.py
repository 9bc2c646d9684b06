"""EKSCluster: zones and addresses."""

import ipaddress
import itertools

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.functions.clusters import changed, settle
from tests.functions.eks_cluster.fleet import eks, pool, provider
from tests.harness import Call

from modelplane.simulate import World


def test_zones_beyond_the_usual(world: World) -> None:
    settled = settle(world, eks(*(pool(f"gpu-{z}", zones=[f"us-east-1{z}"]) for z in "def"), region="us-east-1"))
    assert settled.answer.status["zones"] == ["us-east-1d", "us-east-1e", "us-east-1f"]
    for index, zone in enumerate("def"):
        (ref,) = provider(settled, f"nodegroup-gpu-{zone}")["subnetIdRefs"]
        assert ref["name"] == settled.observed[f"private-subnet-{index}"]["metadata"]["name"]


def test_a_further_zone_takes_a_spare_range(world: World) -> None:
    cidrs = [f"10.0.{16 * i}.0/20" for i in range(4)]
    xr = eks(networking={"subnetCidrs": cidrs})
    before = settle(world, xr)
    assert before.answer.status["zones"] == ["us-west-2a", "us-west-2b", "us-west-2c"]
    after = settle(world, changed(xr, nodePools=[pool(), pool("far", zones=["us-west-2d"])]))
    assert after.answer.status["zones"] == ["us-west-2a", "us-west-2b", "us-west-2c", "us-west-2d"]
    for key in ("cluster", "subnet-0", "private-subnet-0", "nodegroup-gpu", "nat-gateway"):
        assert after.answer.desired[key]["spec"] == before.answer.desired[key]["spec"], key
    assert provider(after, "subnet-3")["cidrBlock"] == "10.0.48.0/20"
    assert world.deleted == []


def test_a_pool_without_zones_uses_them_all(world: World) -> None:
    settled = settle(world, eks({k: v for k, v in pool().items() if k != "zones"}))
    assert len(provider(settled, "nodegroup-gpu")["subnetIdRefs"]) == 3


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    prefix=st.integers(16, 24),
    cuts=st.lists(st.tuples(st.integers(1, 6), st.integers(0, 63)), min_size=2, max_size=6),
)
def test_ranges_never_overlap(call: Call, prefix: int, cuts: list[tuple[int, int]]) -> None:
    vpc = ipaddress.IPv4Network((int(ipaddress.IPv4Address("10.0.0.0")), prefix))
    cidrs = []
    for deeper, index in cuts:
        length = min(28, prefix + deeper)
        size = 1 << (32 - length)
        cidrs.append(str(ipaddress.IPv4Network((int(vpc[0]) + index % (1 << (length - prefix)) * size, length))))
    zones = [f"us-west-2{letter}" for letter in "abcdef"[: len(cidrs)]]
    networking = {"vpcCidr": str(vpc), "subnetCidrs": cidrs, "zones": zones}
    answer = call(eks(networking=networking))
    if answer.conditions["SpecValid"].status == "False":
        assert answer.conditions["SpecValid"].reason == "InvalidNetworking"
        assert not answer.desired
        return
    found = [
        ipaddress.IPv4Network(r["spec"]["forProvider"]["cidrBlock"])
        for r in answer.desired.values()
        if r["kind"] == "Subnet"
    ]
    assert len(found) == 2 * len(cidrs)
    assert all(network.subnet_of(vpc) for network in found)
    assert not [pair for pair in itertools.combinations(found, 2) if pair[0].overlaps(pair[1])]


def test_default_ranges(call: Call) -> None:
    answer = call(eks())
    private = [answer.desired[f"private-subnet-{i}"]["spec"]["forProvider"]["cidrBlock"] for i in range(3)]
    assert private == ["10.0.48.0/20", "10.0.64.0/20", "10.0.80.0/20"]
