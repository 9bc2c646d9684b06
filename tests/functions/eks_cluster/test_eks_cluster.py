"""EKSCluster: what it composes of a spec, in what order, and what it refuses."""

import pytest
import yaml
from tests.functions.clusters import CONDITIONS, changed, cluster, faults, settle
from tests.functions.eks_cluster.fleet import GATED, SEED, efa, eks, pool, system
from tests.functions.grown import Object
from tests.harness import Call, assert_nothing_lost, assert_waiting

from modelplane.simulate import World

INPUTS: dict[str, Object] = {
    "seed": yaml.safe_load(SEED.read_text()),
    "efa": eks(efa("p5.48xlarge", nodeCount=2, diskSizeGb=500), pool("plain")),
    "one card": eks(efa("g6.8xlarge")),
    "no efa on card 0": eks(efa("p6-b300.48xlarge")),
    "capacity block": eks(efa("p5en.48xlarge", capacityBlock={"capacityReservationId": "cr-0123456789abcdef0"})),
    "fixed": eks(pool(nodeCount=3, minNodeCount=3, maxNodeCount=3)),
    "autoscaled": eks(pool(nodeCount=2, minNodeCount=0, maxNodeCount=6)),
    "no zones": eks({k: v for k, v in pool().items() if k != "zones"}),
    "arm": eks(pool(instanceType="g5g.16xlarge", gpu={"acceleratorType": "nvidia-t4g"})),
    "system pool": eks(system("infra"), pool()),
    "odd names": eks(pool("GPU_" + "x" * 36), system("A-0_" + "y" * 36)),
    "two zones": eks(networking={"subnetCidrs": ["10.0.0.0/20", "10.0.16.0/20"]}),
    "six zones": eks(
        networking={
            "vpcCidr": "172.16.0.0/16",
            "subnetCidrs": [f"172.16.{16 * i}.0/20" for i in range(6)],
            "zones": [f"us-west-2{letter}" for letter in "abcdef"],
            "natGateway": "Regional",
        }
    ),
    "later zones": eks(*(pool(f"gpu-{z}", zones=[f"us-east-1{z}"]) for z in "def"), region="us-east-1"),
    "china": eks(pool(zones=["cn-north-1a"]), region="cn-north-1"),
    "government": eks(pool(zones=["us-gov-west-1a"]), region="us-gov-west-1"),
    "own credentials": eks(credentials={"type": "ProviderConfig", "name": "team"}),
    "narrow endpoint": eks(endpoint={"publicCidrs": ["203.0.113.0/24"]}),
    "long name": cluster("EKSCluster", "c" * 63, "n" * 63, region="us-west-2", nodePools=[pool("p" * 40)]),
    "eight pools": eks(system(), *(efa("p5.48xlarge", name=f"p{i}") for i in range(7))),
}


@pytest.mark.parametrize("case", INPUTS)
def test_everything_composed_is_admitted(world: World, case: str) -> None:
    settled = settle(world, INPUTS[case])
    assert faults(settled.answer) == []
    assert settled.answer.ready, settled.answer.conditions
    assert settled.answer.conditions["SpecValid"].status == "True"
    names = [(r["apiVersion"], r["kind"], r.get("metadata", {}).get("name")) for r in settled.answer.desired.values()]
    named = [n for n in names if n[2]]
    assert len(set(named)) == len(named)


# The four cases


def test_create(call: Call) -> None:
    answer = call(eks())
    assert {"vpc", "subnet-0", "private-subnet-2", "iam-role-cluster", "efs-filesystem"} <= set(answer.desired)
    assert [k for k in answer.desired if k.startswith(GATED)] == []
    assert answer.ready is False
    assert answer.conditions["SpecValid"].status == "True"
    for condition in CONDITIONS - {"SpecValid"}:
        assert answer.conditions[condition].status == "False"
    assert "vpc" in answer.conditions["NetworkReady"].message
    assert answer.status["zones"] == ["us-west-2a", "us-west-2b", "us-west-2c"]
    assert "secrets" not in answer.status


def test_order(world: World) -> None:
    """Nothing is composed before what AWS wants first."""
    world.apply(eks(efa("p5.48xlarge")))
    first: dict[str, int] = {}
    for number in range(15):
        answer = world.reconcile("EKSCluster", "west", "platform")
        for key in answer.desired:
            first.setdefault(key, number)
        world.providers.tend()
    for before, after in (
        ("iam-attach-cluster-policy", "cluster"),
        ("cluster", "cluster-auth"),
        ("cluster", "launch-template-gpu"),
        ("launch-template-system", "nodegroup-system"),
        ("addon-vpc-cni", "nodegroup-system"),
        ("nodegroup-system", "nodegroup-gpu"),
        ("nodegroup-system", "addon-coredns"),
        ("cluster-auth", "provider-config-helm"),
        ("provider-config-helm", "release-efa-dra-driver"),
        ("efs-mount-target-0", "storage-class-rwx-efs"),
        ("addon-aws-efs-csi-driver", "storage-class-rwx-efs"),
        ("cluster", "usage-iam-node-cni-by-cluster"),
    ):
        assert first[before] < first[after], (before, after)


def test_steady(world: World) -> None:
    settled = settle(world, INPUTS["seed"])
    answer = settled.answer
    assert answer.ready
    assert set(answer.desired) == set(settled.observed)
    assert not answer.results
    assert answer.status == {k: v for k, v in settled.xr["status"].items() if k != "conditions"}
    assert [s["type"] for s in answer.status["secrets"]] == ["Kubeconfig"]
    assert answer.status["cache"] == {"storageClassName": "modelplane-rwx-efs"}
    assert answer.status["nodePools"] == [
        {"name": "system", "ready": True, "desired": 2},
        {"name": "gpu-a10g", "ready": True, "desired": 0},
    ]
    assert answer.conditions["NodePoolsReady"].reason == "ScaleFromZeroUnsupported"


def test_an_input_disappears(world: World, call: Call) -> None:
    """Published fields stay, readiness goes, and the message names what is missing."""
    settled = settle(world, eks())
    observed = {k: v for k, v in settled.observed.items() if k not in ("cluster-auth", "storage-class-rwx-efs")}
    answer = call(settled.xr, observed)
    assert_waiting(answer)
    assert answer.status["secrets"] == settled.xr["status"]["secrets"]
    assert answer.status["cache"] == settled.xr["status"]["cache"]
    assert "cluster-auth" in answer.conditions["ControlPlaneReady"].message


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({"region": "us-east-1"}, "region cannot change from us-west-2 to us-east-1"),
        ({"networking": {"vpcCidr": "10.1.0.0/16"}}, "networking.vpcCidr cannot change from 10.0.0.0/16"),
        ({"networking": {"subnetCidrs": ["10.0.16.0/20", "10.0.0.0/20"]}}, "networking.subnetCidrs[0] cannot change"),
        ({"networking": {"subnetCidrs": ["10.0.0.0/20", "10.0.16.0/20"]}}, "subnetCidrs[2] cannot change"),
        ({"nodePools": []}, "spec.nodePools must be a list"),
        ({"nodePools": "x"}, "spec.nodePools must be a list"),
        ({"nodePools": [{"role": "GPU"}]}, "spec.nodePools must be a list"),
        ({"nodePools": [pool(), pool()]}, "must not repeat a name"),
        ({"region": 7}, "spec.region"),
    ],
)
def test_the_spec_turns_fatal(world: World, call: Call, spec: Object, says: str) -> None:
    settled = settle(world, eks())
    answer = call(changed(settled.xr, **spec), settled.observed)
    assert says in answer.fatal
    assert set(answer.conditions) >= CONDITIONS
    assert answer.conditions["SpecValid"].status == "False"
    assert answer.conditions["NetworkReady"].status == "True"


@pytest.mark.parametrize(
    ("networking", "says"),
    [
        ({"vpcCidr": "10.0.0.0/20"}, "has no room"),
        ({"subnetCidrs": ["10.0.1.0/20", "10.0.16.0/20"]}, "networking.subnetCidrs[0] 10.0.1.0/20 is not an IPv4"),
        ({"subnetCidrs": ["10.0.0.0/20", "10.1.16.0/20"]}, "networking.subnetCidrs[1] 10.1.16.0/20 is outside"),
        ({"subnetCidrs": ["10.0.0.0/20", "10.0.0.0/21"]}, "networking.subnetCidrs[1] 10.0.0.0/21 overlaps"),
        ({"subnetCidrs": ["10.0.0.0/29", "10.0.16.0/20"]}, "must have a prefix from /16 to /28"),
        ({"zones": ["us-west-2a", "us-west-2a"]}, "repeats us-west-2a"),
        ({"zones": ["us-west-2a", "us-east-1a"]}, "us-east-1a is not in region us-west-2"),
        ({"zones": ["us-west-2a"]}, "names 1 zones"),
        ({"zones": [f"us-west-2{z}" for z in "abcd"]}, "names 4 zones"),
    ],
)
def test_networking_is_refused(call: Call, networking: Object, says: str) -> None:
    if "vpcCidr" in networking:
        networking = {**networking, "subnetCidrs": ["10.0.0.0/21", "10.0.8.0/21"]}
    answer = call(eks(networking=networking))
    assert not answer.desired
    assert answer.ready is False
    assert answer.conditions["SpecValid"].reason == "InvalidNetworking"
    assert says in answer.conditions["SpecValid"].message


def test_networking_turns_bad_and_everything_is_held(world: World, call: Call) -> None:
    settled = settle(world, eks())
    cidrs = [*(f"10.0.{16 * i}.0/20" for i in range(3)), "10.0.48.0/20"]
    answer = call(changed(settled.xr, networking={"subnetCidrs": cidrs}), settled.observed)
    assert "overlaps private subnet 0" in answer.conditions["SpecValid"].message
    assert_waiting(answer)
    assert answer.status["secrets"] == settled.xr["status"]["secrets"]


def test_us_west_1_has_no_letters_of_its_own(call: Call) -> None:
    answer = call(eks(pool(zones=["us-west-1b"]), region="us-west-1"))
    assert "needs networking.zones" in answer.conditions["SpecValid"].message
    both = call(eks(pool(zones=["us-west-1b", "us-west-1c"]), region="us-west-1"))
    assert both.status["zones"] == ["us-west-1b", "us-west-1c"]


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (pool("bad", zones=["us-west-2d"]), "zone us-west-2d has no subnet"),
        (pool("bad", zones=["us-east-1a"]), "zone us-east-1a is not in region us-west-2"),
        (efa("g7.48xlarge", name="bad"), "fabric EFA is not known for instance type g7.48xlarge"),
        (pool("bad", nodeCount=9), "nodeCount 9 is above maxNodeCount 8"),
        (pool("bad", minNodeCount=2, nodeCount=1), "minNodeCount 2 is above nodeCount 1"),
        (pool("bad", role="Gpu"), "role must be System or GPU, not Gpu"),
        (pool("bad", instanceType=""), "names no machine"),
    ],
)
def test_a_bad_pool_stops_no_other(world: World, call: Call, bad: Object, says: str) -> None:
    """New, it is left out; live, it keeps its last shape."""
    networking = {"zones": ["us-west-2a", "us-west-2b"]}
    settled = settle(world, eks(pool(), pool("bad"), networking=networking))
    other = pool(maxNodeCount=5)
    answer = call(changed(settled.xr, nodePools=[other, bad]), settled.observed)
    assert_nothing_lost(answer)
    message = answer.conditions["SpecValid"].message
    assert answer.conditions["SpecValid"].reason == "InvalidNodePool"
    assert says in message
    assert "Kept as they last were: bad." in message
    assert answer.desired["nodegroup-bad"]["spec"] == settled.answer.desired["nodegroup-bad"]["spec"]
    assert answer.desired["nodegroup-gpu"]["spec"]["forProvider"]["scalingConfig"]["maxSize"] == 5
    fresh = call(eks(other, bad, networking=networking))
    assert says in fresh.conditions["SpecValid"].message
    assert "launch-template-gpu" in fresh.desired
    assert "launch-template-bad" not in fresh.desired


def test_efa_outside_the_commercial_partition(call: Call) -> None:
    answer = call(eks(efa("p5.48xlarge", zones=["us-gov-west-1a"]), region="us-gov-west-1"))
    assert "fabric EFA is not supported in region us-gov-west-1" in answer.conditions["SpecValid"].message
