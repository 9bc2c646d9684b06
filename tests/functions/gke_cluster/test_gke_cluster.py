"""GKECluster: what it composes of a spec, in what order, and what it refuses."""

import re
from typing import Any

import pytest
from tests.functions.clusters import CONDITIONS, changed, cluster, faults, settle
from tests.functions.gke_cluster.fleet import GATED, PROJECT, REQUIREMENT, config, gke, pool, provider, system
from tests.functions.grown import Object
from tests.harness import Call, assert_nothing_lost, assert_waiting

from modelplane.simulate import World

FOUND = {REQUIREMENT: [config()]}
LIMITS = {"Network": 63, "Subnetwork": 63, "Cluster": 40, "NodePool": 40, "ServiceAccount": 30}
"""Longest name that Google takes of a kind."""

INPUTS: dict[str, Object] = {
    "example": gke(system(), pool(nodeCount=2, maxNodeCount=10, diskSizeGb=500)),
    "injected system pool": gke(pool()),
    "fixed": gke(pool(nodeCount=3, minNodeCount=3, maxNodeCount=3)),
    "fixed in three zones": gke(
        pool(nodeCount=6, minNodeCount=6, maxNodeCount=6, zones=[f"us-central1-{z}" for z in "abc"])
    ),
    "autoscaled in two zones": gke(pool(nodeCount=1, maxNodeCount=6, zones=["us-central1-a", "us-central1-f"])),
    "empty": gke(pool(nodeCount=0, maxNodeCount=0)),
    "fixed system pool": gke(system(nodeCount=3, minNodeCount=3, maxNodeCount=3), pool()),
    "own ranges": gke(
        networking={"nodeCidr": "172.16.0.0/24", "podCidr": "172.20.0.0/16", "serviceCidr": "172.21.0.0/20"}
    ),
    "narrow endpoint": gke(endpoint={"publicCidrs": ["203.0.113.0/24", "198.51.100.7/32"]}),
    "no project": gke(project=""),
    "long name": cluster(
        "GKECluster", "c" * 63, "n" * 63, project=PROJECT, region="us-central1", nodePools=[pool("p" * 40)]
    ),
    "name that starts with a digit": cluster(
        "GKECluster", "4-gpus", project=PROJECT, region="us-central1", nodePools=[pool()]
    ),
    "eight pools": gke(system(), *(pool(f"p{i}") for i in range(7))),
    "no gpus": gke(system()),
}


@pytest.mark.parametrize("case", INPUTS)
def test_everything_composed_is_admitted(world: World, case: str) -> None:
    settled = settle(world, INPUTS[case], config())
    assert faults(settled.answer) == []
    assert settled.answer.ready, settled.answer.conditions
    assert settled.answer.conditions["SpecValid"].status == "True"
    for key, resource in settled.answer.desired.items():
        limit = LIMITS.get(resource["kind"])
        if limit:
            name = resource["metadata"]["annotations"]["crossplane.io/external-name"]
            assert re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", name), name
            assert 6 <= len(name) <= limit or resource["kind"] == "NodePool", name
        if ".gcp.m." in resource["apiVersion"] and resource["kind"] != "ServiceAccountKey":
            assert resource["spec"]["forProvider"]["project"] == PROJECT, key


# The four cases


def test_create(call: Call) -> None:
    answer = call(gke(), {}, FOUND)
    assert set(answer.desired) == {
        "network",
        "subnet",
        "service-account",
        "service-account-key",
        "node-service-account",
        "projectservice-filestore",
    }
    assert answer.ready is False
    assert answer.conditions["SpecValid"].status == "True"
    for condition in CONDITIONS - {"SpecValid"}:
        assert answer.conditions[condition].status == "False"
    assert "subnet" in answer.conditions["NetworkReady"].message
    assert "secrets" not in answer.status


def test_order(world: World) -> None:
    """Nothing is composed before what Google Cloud wants first."""
    world.apply([config(), gke()])
    first: dict[str, int] = {}
    for number in range(12):
        answer = world.reconcile("GKECluster", "west", "platform")
        for key in answer.desired:
            first.setdefault(key, number)
        world.providers.tend()
    for before, after in (
        ("subnet", "cluster"),
        ("service-account", "iam-binding"),
        ("cluster", "nodepool-system"),
        ("iam-binding-nodes", "nodepool-gpu"),
        ("service-account-key", "provider-config-helm"),
        ("nodepool-system", "nvidia-driver-installer"),
        ("nodepool-system", "storage-class-rwx"),
    ):
        assert first[before] < first[after], (before, after)


def test_steady(world: World) -> None:
    settled = settle(world, INPUTS["example"], config())
    answer = settled.answer
    assert answer.ready
    assert set(answer.desired) == set(settled.observed)
    assert not answer.results
    assert answer.status == {k: v for k, v in settled.xr["status"].items() if k != "conditions"}
    assert [s["type"] for s in answer.status["secrets"]] == ["Kubeconfig", "GoogleApplicationCredentials"]
    assert answer.status["cache"] == {"storageClassName": "modelplane-rwx"}
    assert answer.status["nodePools"] == [{"name": "system", "ready": True}, {"name": "gpu", "ready": True}]
    for key, secret in (("cluster", 0), ("service-account-key", 1)):
        reference = answer.desired[key]["spec"]["writeConnectionSecretToRef"]
        assert reference == {"name": answer.status["secrets"][secret]["name"]}
    helm = answer.desired["provider-config-helm"]["spec"]
    assert helm["identity"]["secretRef"]["name"] == answer.status["secrets"][1]["name"]


def test_an_input_disappears(world: World, call: Call) -> None:
    """Published fields stay, readiness goes, and the message names what is missing."""
    settled = settle(world, gke(), config())
    observed = {k: v for k, v in settled.observed.items() if k not in ("service-account-key", "storage-class-rwx")}
    answer = call(settled.xr, observed, settled.required)
    assert_waiting(answer)
    assert answer.status["secrets"] == settled.xr["status"]["secrets"]
    assert answer.status["cache"] == settled.xr["status"]["cache"]
    assert "service-account-key" in answer.conditions["ControlPlaneReady"].message


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({"region": "us-east1"}, "region cannot change from us-central1 to us-east1"),
        ({"project": "other-project"}, "project cannot change from my-project to other-project"),
        ({"networking": {"nodeCidr": "10.9.0.0/24"}}, "networking.nodeCidr cannot change from 10.0.0.0/24"),
        ({"networking": {"podCidr": "10.9.0.0/16"}}, "networking.podCidr cannot change from 10.1.0.0/16"),
        ({"networking": {"serviceCidr": "10.9.0.0/16"}}, "networking.serviceCidr cannot change from 10.2.0.0/16"),
        ({"nodePools": []}, "spec.nodePools must be a list"),
        ({"nodePools": [pool(), pool()]}, "must not repeat a name"),
        ({"region": 7}, "spec.region"),
    ],
)
def test_the_spec_turns_fatal(world: World, call: Call, spec: Object, says: str) -> None:
    settled = settle(world, gke(), config())
    answer = call(changed(settled.xr, **spec), settled.observed, settled.required)
    assert says in answer.fatal
    assert set(answer.conditions) >= CONDITIONS
    assert answer.conditions["SpecValid"].status == "False"
    assert answer.conditions["NetworkReady"].status == "True"


@pytest.mark.parametrize(
    ("networking", "says"),
    [
        ({"nodeCidr": "10.0.0.1/24"}, "networking.nodeCidr 10.0.0.1/24 is not an IPv4 range"),
        ({"podCidr": "10.0.0.0/16"}, "networking.podCidr 10.0.0.0/16 overlaps networking.nodeCidr 10.0.0.0/24"),
        ({"serviceCidr": "10.1.4.0/24"}, "networking.serviceCidr 10.1.4.0/24 overlaps networking.podCidr 10.1.0.0/16"),
    ],
)
def test_networking_is_refused(call: Call, networking: Object, says: str) -> None:
    answer = call(gke(networking=networking), {}, FOUND)
    assert not answer.desired
    assert answer.ready is False
    assert answer.conditions["SpecValid"].reason == "InvalidNetworking"
    assert says in answer.conditions["SpecValid"].message


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (pool("bad", zones=["us-central2-a"]), "zone us-central2-a is not in region us-central1"),
        (pool("bad", zones=["us-central10-a"]), "zone us-central10-a is not in region us-central1"),
        (pool("bad", zones=[]), "needs zones"),
        (pool("bad", gpu={}), "needs gpu.acceleratorType"),
        (
            pool("bad", nodeCount=3, minNodeCount=3, maxNodeCount=3, zones=["us-central1-a", "us-central1-b"]),
            "nodeCount 3 cannot be spread evenly over zones us-central1-a, us-central1-b on GKE; use 2 or 4, one zone",
        ),
        (pool("bad", nodeCount=9), "nodeCount 9 is above maxNodeCount 8"),
        (pool("bad", role="Gpu"), "role must be System or GPU, not Gpu"),
    ],
)
def test_a_bad_pool_stops_no_other(world: World, call: Call, bad: Object, says: str) -> None:
    """New, it is left out; live, it keeps its last shape."""
    settled = settle(world, gke(pool(), pool("bad")), config())
    other = pool(maxNodeCount=5)
    answer = call(changed(settled.xr, nodePools=[other, bad]), settled.observed, settled.required)
    assert_nothing_lost(answer)
    assert answer.conditions["SpecValid"].reason == "InvalidNodePool"
    assert says in answer.conditions["SpecValid"].message
    assert "Kept as they last were: bad." in answer.conditions["SpecValid"].message
    assert answer.desired["nodepool-bad"]["spec"] == settled.answer.desired["nodepool-bad"]["spec"]
    assert answer.desired["nodepool-gpu"]["spec"]["forProvider"]["autoscaling"]["totalMaxNodeCount"] == 5
    observed = {k: v for k, v in settled.observed.items() if k != "nodepool-bad"}
    fresh = call(changed(settled.xr, nodePools=[other, bad]), observed, settled.required)
    assert says in fresh.conditions["SpecValid"].message
    assert "nodepool-bad" not in fresh.desired
    assert "nodepool-gpu" in fresh.desired


# The project


def test_the_configuration_is_looked_up_first(call: Call) -> None:
    for xr in (gke(), gke(project="")):
        answer = call(xr)
        assert not answer.desired
        assert answer.ready is False
        assert answer.conditions["SpecValid"].reason == "WaitingForProject"
        selector = answer.requirements[REQUIREMENT]
        assert (selector.api_version, selector.kind) == ("gcp.m.upbound.io/v1beta1", "ClusterProviderConfig")
        assert (selector.match_name, selector.namespace) == ("default", "")
    own = call(gke(credentials={"type": "ProviderConfig", "name": "team"})).requirements[REQUIREMENT]
    assert (own.kind, own.match_name, own.namespace) == ("ProviderConfig", "team", "platform")


@pytest.mark.parametrize("found", [[], [config("")], [{}], [{"spec": "x"}]])
def test_no_project_anywhere(call: Call, found: list[Any]) -> None:
    answer = call(gke(project=""), {}, {REQUIREMENT: found})
    assert not answer.desired
    assert answer.ready is False
    assert answer.ttl == 15
    assert answer.conditions["SpecValid"].reason == "WaitingForProject"
    assert "spec.projectID of ClusterProviderConfig default" in answer.conditions["SpecValid"].message


def test_the_project_of_the_configuration(call: Call) -> None:
    answer = call(gke(project=""), {}, {REQUIREMENT: [config("their-project")]})
    assert answer.desired["network"]["spec"]["forProvider"]["project"] == "their-project"


def test_an_absent_configuration_is_no_reason_to_wait_where_the_spec_has_a_project(call: Call) -> None:
    assert "network" in call(gke(), {}, {REQUIREMENT: []}).desired


def test_projects_that_differ_before_anything_exists(call: Call) -> None:
    answer = call(gke(), {}, {REQUIREMENT: [config("their-project")]})
    assert not answer.desired
    assert answer.ready is False
    assert answer.conditions["SpecValid"].reason == "ProjectMismatch"
    assert "their-project" in answer.conditions["SpecValid"].message
    assert "my-project" in answer.conditions["SpecValid"].message


@pytest.mark.parametrize("project", [PROJECT, ""])
def test_projects_that_differ_later(world: World, call: Call, project: str) -> None:
    """What runs stays in its project; a warning says so once."""
    settled = settle(world, gke(project=project), config())
    world.apply(config("their-project"))
    again = settle(world, gke(project=project))
    assert {
        r["spec"]["forProvider"].get("project") for r in again.answer.desired.values() if ".gcp.m." in r["apiVersion"]
    } == {PROJECT, None}
    assert set(again.answer.desired) == set(settled.answer.desired)
    assert again.answer.ready
    assert again.answer.conditions["SpecValid"].status == "True"
    assert "their-project" in again.answer.conditions["SpecValid"].message
    assert again.answer.warnings == []
    assert any("their-project" in e.message for e in world.events("GKECluster", "west", "platform"))


def test_the_project_is_remembered_by_what_exists(world: World, call: Call) -> None:
    settled = settle(world, gke(project=""), config())
    for required in ({}, {REQUIREMENT: []}, {REQUIREMENT: [config("")]}):
        answer = call(settled.xr, settled.observed, required)
        assert_nothing_lost(answer)
        assert provider(settled, "cluster") == answer.desired["cluster"]["spec"]["forProvider"]
        assert answer.ready


# The control plane and its nodes


@pytest.mark.parametrize(
    ("fields", "sizes", "init"),
    [
        ({"nodeCount": 3, "minNodeCount": 3, "maxNodeCount": 3}, {"nodeCount": 3}, {}),
        ({"nodeCount": 6, "minNodeCount": 6, "maxNodeCount": 6, "zones": 3}, {"nodeCount": 2}, {}),
        ({"nodeCount": 0, "maxNodeCount": 0}, {"nodeCount": 0}, {}),
        ({"nodeCount": 2, "maxNodeCount": 10}, {"autoscaling": (0, 10)}, {"initialNodeCount": 2}),
        ({"nodeCount": 5, "maxNodeCount": 10, "zones": 2}, {"autoscaling": (0, 10)}, {"initialNodeCount": 2}),
        ({"nodeCount": 1, "minNodeCount": 1, "zones": 3}, {"autoscaling": (1, 8)}, {"initialNodeCount": 0}),
    ],
)
def test_sizes_are_totals(world: World, fields: Object, sizes: Object, init: Object) -> None:
    zones = [f"us-central1-{z}" for z in "abc"[: fields.get("zones", 1)]]
    settled = settle(world, gke(pool(**{**fields, "zones": zones})), config())
    found = provider(settled, "nodepool-gpu")
    assert found["nodeLocations"] == zones
    if "autoscaling" in sizes:
        low, high = sizes["autoscaling"]
        sizes = {"autoscaling": {"totalMinNodeCount": low, "totalMaxNodeCount": high, "locationPolicy": "ANY"}}
    assert {k: v for k, v in found.items() if k in ("nodeCount", "autoscaling", "initialNodeCount")} == sizes
    assert settled.answer.desired["nodepool-gpu"]["spec"].get("initProvider", {}) == init


def test_the_system_pool_that_is_added(world: World) -> None:
    settled = settle(world, gke(), config())
    found = provider(settled, "nodepool-system")
    assert found["autoscaling"] == {"totalMinNodeCount": 2, "totalMaxNodeCount": 4, "locationPolicy": "BALANCED"}
    assert found["nodeConfig"]["machineType"] == "e2-standard-4"
    assert "nodeLocations" not in found
    assert "guestAccelerator" not in found["nodeConfig"]


def test_a_fixed_system_pool_stays_in_its_total(world: World) -> None:
    settled = settle(world, INPUTS["fixed system pool"], config())
    found = provider(settled, "nodepool-system")["autoscaling"]
    assert (found["totalMinNodeCount"], found["totalMaxNodeCount"]) == (3, 3)


def test_gpu_nodes_leave_devices_to_dra(world: World) -> None:
    settled = settle(world, gke(), config())
    node = provider(settled, "nodepool-gpu")["nodeConfig"]
    (accelerator,) = node["guestAccelerator"]
    assert accelerator == {
        "type": "nvidia-h100-80gb",
        "count": 8,
        "gpuDriverInstallationConfig": {"gpuDriverVersion": "INSTALLATION_DISABLED"},
    }
    assert node["labels"]["modelplane.ai/pool"] == "gpu"
    assert node["labels"]["gke-no-default-nvidia-gpu-device-plugin"] == "true"
    manifest = provider(settled, "nvidia-driver-installer")["manifest"]
    (installer,) = manifest["spec"]["template"]["spec"]["initContainers"]
    env = {e["name"]: e["value"] for e in installer["env"]}
    assert len(env) == 7
    assert env["NVIDIA_INSTALL_DIR_HOST"] == "/home/kubernetes/bin/nvidia"
    mounted = {m["mountPath"]: m["name"] for m in installer["volumeMounts"]}
    volumes = {v["name"]: v["hostPath"]["path"] for v in manifest["spec"]["template"]["spec"]["volumes"]}
    for variable in ("NVIDIA_INSTALL_DIR", "VULKAN_ICD_DIR", "COS_TOOLS_DIR"):
        assert volumes[mounted[env[f"{variable}_CONTAINER"]]] == env[f"{variable}_HOST"]


def test_without_gpus_there_is_no_driver(world: World) -> None:
    assert "nvidia-driver-installer" not in settle(world, INPUTS["no gpus"], config()).observed


@pytest.mark.parametrize(
    ("live", "wanted", "forced"),
    [
        ("", "1.36", True),
        ("1.35.3-gke.100", "1.36", True),
        ("1.36.0-gke.100", "1.36", False),
        ("1.37.1-gke.100", "1.36", False),
        ("1.36.1-gke.100", "1.36.2", True),
        ("1.36.2-gke.100", "1.36.2", False),
        ("1.9.1-gke.100", "1.10", True),
        ("1.36.2-gke.100", "1.36.2-gke.50", False),
    ],
)
def test_the_release_channel_may_run_ahead(world: World, call: Call, live: str, wanted: str, forced: bool) -> None:
    settled = settle(world, gke(), config())
    found = settled.observed["cluster"]
    report = {"masterVersion": live} if live else {}
    found = {**found, "status": {**found["status"], "atProvider": report}}
    xr = changed(settled.xr, kubernetesVersion=wanted)
    answer = call(xr, {**settled.observed, "cluster": found}, settled.required)
    spec = answer.desired["cluster"]["spec"]
    assert spec["forProvider"].get("minMasterVersion") == (wanted if forced else None)
    assert spec.get("initProvider", {}).get("minMasterVersion") == (None if forced else wanted)


def test_a_version_that_is_not_reported_for_a_moment_is_not_forced(world: World, call: Call) -> None:
    settled = settle(world, gke(), config())
    found = {**settled.observed["cluster"], "status": {}}
    answer = call(settled.xr, {**settled.observed, "cluster": found}, settled.required)
    assert answer.desired["cluster"]["spec"] == settled.answer.desired["cluster"]["spec"]


def test_nothing_gated_comes_first(call: Call) -> None:
    assert [k for k in call(gke(), {}, FOUND).desired if k.startswith(GATED)] == []
