"""EKSCluster: launch templates, node groups and what they may do."""

import json

import pytest
from tests.functions.clusters import changed, settle
from tests.functions.eks_cluster.fleet import efa, eks, pool, provider
from tests.functions.grown import Object
from tests.harness import Call

from modelplane.simulate import World

COUNTS = {
    **dict.fromkeys(("p5.48xlarge", "p5e.48xlarge"), 32),
    **dict.fromkeys(("p5en.48xlarge", "p6-b300.48xlarge"), 16),
    "p6-b200.48xlarge": 8,
    **dict.fromkeys(("p4d.24xlarge", "p4de.24xlarge", "g6e.48xlarge", "g7e.48xlarge"), 4),
    **dict.fromkeys(("g6e.24xlarge", "g7e.24xlarge"), 2),
    **dict.fromkeys(("p5.4xlarge", "p3dn.24xlarge", "gr6.8xlarge"), 1),
    **{f"{family}.{size}xlarge": 1 for family in ("g6e", "g4dn") for size in (8, 12, 16)},
    **{f"g7e.{size}xlarge": 1 for size in (8, 12)},
    **{f"{family}.{size}xlarge": 1 for family in ("g6", "g5") for size in (8, 12, 16, 24, 48)},
}
"""EFA interfaces of an instance type."""


def test_efa_interfaces(world: World, call: Call) -> None:
    settled = settle(world, eks(efa("g6.8xlarge")))
    group = settled.observed["efa-security-group"]["metadata"]["annotations"]["crossplane.io/external-name"]
    own = settled.observed["cluster"]["status"]["atProvider"]["vpcConfig"]["clusterSecurityGroupId"]
    for machine, count in COUNTS.items():
        answer = call(changed(settled.xr, nodePools=[efa(machine)]), settled.observed)
        found = answer.desired["launch-template-gpu"]["spec"]["forProvider"]["networkInterfaces"]
        kinds = [i["interfaceType"] for i in found]
        assert kinds.count("efa") + kinds.count("efa-only") == count, machine
        assert kinds.count("efa") == (count == 1), machine
        assert found[0]["networkCardIndex"] == found[0]["deviceIndex"] == 0
        assert len({(i["networkCardIndex"], i["deviceIndex"]) for i in found}) == len(found), machine
        assert all(i["securityGroups"] == [group, own] for i in found)
        assert all("subnetId" not in i for i in found)


def test_card_0_of_p6_b300_has_no_efa(world: World) -> None:
    settled = settle(world, eks(efa("p6-b300.48xlarge")))
    found = provider(settled, "launch-template-gpu")["networkInterfaces"]
    assert [(i["networkCardIndex"], i["interfaceType"]) for i in found[:2]] == [(0, "interface"), (1, "efa-only")]
    assert len(found) == 17


@pytest.mark.parametrize(
    ("fields", "start", "bounds"),
    [
        ({"nodeCount": 3, "minNodeCount": 3, "maxNodeCount": 3}, None, {"minSize": 3, "maxSize": 3, "desiredSize": 3}),
        ({"nodeCount": 0, "maxNodeCount": 0}, None, {"minSize": 0, "maxSize": 1, "desiredSize": 0}),
        ({"nodeCount": 2, "maxNodeCount": 6}, 2, {"minSize": 1, "maxSize": 6}),
        ({"nodeCount": 0, "maxNodeCount": 6}, 0, {"minSize": 0, "maxSize": 6}),
        ({"nodeCount": 4, "minNodeCount": 3, "maxNodeCount": 6}, 4, {"minSize": 3, "maxSize": 6}),
        ({}, 1, {"minSize": 1, "maxSize": 8}),
    ],
)
def test_sizes(world: World, fields: Object, start: int | None, bounds: Object) -> None:
    settled = settle(world, eks(pool(**fields)))
    assert provider(settled, "nodegroup-gpu")["scalingConfig"] == bounds
    init = settled.answer.desired["nodegroup-gpu"]["spec"].get("initProvider", {})
    assert init == ({} if start is None else {"scalingConfig": {"desiredSize": start}})


@pytest.mark.parametrize(
    ("desired", "bounds"),
    [
        (4, {"minSize": 2, "maxSize": 6}),
        (9, {"minSize": 2, "maxSize": 6, "desiredSize": 6}),
        (1, {"minSize": 2, "maxSize": 6, "desiredSize": 2}),
    ],
)
def test_what_the_autoscaler_chose_stays_within_bounds(world: World, call: Call, desired: int, bounds: Object) -> None:
    settled = settle(world, eks(pool(nodeCount=2, minNodeCount=2, maxNodeCount=6)))
    live = settled.observed["nodegroup-gpu"]
    live = {**live, "status": {**live["status"], "atProvider": {"scalingConfig": {"desiredSize": desired}}}}
    answer = call(settled.xr, {**settled.observed, "nodegroup-gpu": live})
    assert answer.desired["nodegroup-gpu"]["spec"]["forProvider"]["scalingConfig"] == bounds
    assert answer.status["nodePools"] == [{"name": "gpu", "ready": True, "desired": desired}]


def test_capacity_blocks(world: World) -> None:
    settled = settle(world, eks(efa("p5en.48xlarge", capacityBlock={"capacityReservationId": "cr-0123456789abcdef0"})))
    template = provider(settled, "launch-template-gpu")
    assert template["instanceMarketOptions"] == {"marketType": "capacity-block"}
    target = template["capacityReservationSpecification"]["capacityReservationTarget"]
    assert target == {"capacityReservationId": "cr-0123456789abcdef0"}
    group = provider(settled, "nodegroup-gpu")
    assert group["capacityType"] == "CAPACITY_BLOCK"
    assert "version" not in group


@pytest.mark.parametrize(
    ("region", "name"), [("us-west-2", "aws"), ("cn-north-1", "aws-cn"), ("us-gov-west-1", "aws-us-gov")]
)
def test_partitions(call: Call, region: str, name: str) -> None:
    answer = call(eks(pool(zones=[f"{region}a"]), region=region))
    arns = [
        r["spec"]["forProvider"]["policyArn"]
        for r in answer.desired.values()
        if r["kind"] == "RolePolicyAttachment" and "policyArn" in r["spec"]["forProvider"]
    ]
    assert len(arns) == 5
    assert all(arn.startswith(f"arn:{name}:iam::aws:policy/") for arn in arns)


def test_the_autoscaler_may_change_its_own_groups_only(world: World) -> None:
    settled = settle(world, eks())
    statements = json.loads(provider(settled, "iam-policy-cluster-autoscaler")["policy"])["Statement"]
    name = settled.observed["cluster"]["metadata"]["annotations"]["crossplane.io/external-name"]
    conditions = statements[1]["Condition"]["StringEquals"]
    assert conditions[f"aws:ResourceTag/k8s.io/cluster-autoscaler/{name}"] == "owned"
    discovery = settled.answer.desired["release-cluster-autoscaler"]["spec"]["forProvider"]["values"]["autoDiscovery"]
    assert discovery == {"clusterName": name}


def test_two_lives_of_one_name_share_nothing(call: Call) -> None:
    one, two = eks(), eks()
    one["metadata"]["uid"], two["metadata"]["uid"] = "1", "2"
    names = [call(xr).desired["launch-template-system"]["spec"]["forProvider"]["name"] for xr in (one, two)]
    assert names[0] != names[1]
