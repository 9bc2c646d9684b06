"""Clusters that a plan would build: what of, and in which order."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from modelplane.plan.timeline import MINUTES

ROOT = Path(__file__).resolve().parents[3]
CLASSES = "examples/inferenceclasses"
TYPICAL = {kind: minutes for (group, kind), minutes in MINUTES.items() if group.startswith("eks.")}


def run(*arguments: str, stdin: str = "") -> str:
    command = [str(Path(sys.executable).with_name("modelplane")), "plan", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, input=stdin, cwd=ROOT).stdout


def built(*arguments: str, stdin: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run(*arguments, "-o", "json", stdin=stdin))["built"]
    return found


def order(cluster: dict[str, Any]) -> list[tuple[int, str]]:
    return [(step["minute"], step["after"]) for step in cluster["steps"]]


EKS = [
    (0, ""),
    (10, "Cluster cluster"),
    (13, "NodeGroup nodegroup-system"),
    (15, "Addon addon-aws-efs-csi-driver"),
]
GKE = [(0, ""), (8, "Cluster cluster"), (11, "NodePool nodepool-system")]
STACK = ["Release ai-gateway-crds", "Release envoy-gateway", "Release ai-gateway"]


@pytest.mark.parametrize(
    ("example", "kind", "expected", "minutes"),
    [
        ("eksclusters/gpu", "EKSCluster", EKS, 16),
        ("gkeclusters/gpu", "GKECluster", GKE, 11),
        ("inferenceclusters/eks", "InferenceCluster", [*EKS, *zip((15, 17, 19), STACK, strict=True)], 19),
        ("inferenceclusters/gke", "InferenceCluster", [*GKE, *zip((13, 15, 17), STACK, strict=True)], 17),
    ],
)
def test_what_waits_for_what(example: str, kind: str, expected: list[tuple[int, str]], minutes: int) -> None:
    paths = (f"examples/{example}.yaml", CLASSES)
    (cluster,) = built(*paths)
    assert (cluster["kind"], order(cluster), cluster["minutes"]) == (kind, expected, minutes)
    assert cluster["objects"] == sum(cluster["kinds"].values())
    made: dict[str, int] = {}
    for step in cluster["steps"]:
        for name, count in step["kinds"].items():
            made[name] = made.get(name, 0) + count
    assert made == cluster["kinds"]
    text = run(*paths)
    assert f"{cluster['objects']} objects, ready after about {minutes} minutes (estimate)" in text


def test_what_nothing_waits_for_delays_nothing() -> None:
    """A NAT gateway takes minutes, but the control plane is created beside it, not after it."""
    (cluster,) = built("examples/eksclusters/gpu.yaml")
    assert {"NATGateway", "Cluster"} <= cluster["steps"][0]["kinds"].keys()
    assert not any("NATGateway" in step["after"] for step in cluster["steps"])


def test_clusters_of_one_shape_take_the_same_time() -> None:
    manifest = (ROOT / "examples/inferenceclusters/eks.yaml").read_text()
    both = manifest + "\n---\n" + manifest.replace("east-eks", "north-eks").replace("us-east-1", "us-east-2")
    east, north = built("-", CLASSES, stdin=both)
    assert (east["name"], north["name"]) == ("east-eks", "north-eks")
    assert {**east, "name": ""} == {**north, "name": ""}
    assert built("examples/inferenceclusters/eks.yaml", CLASSES) == [east]


def test_what_exists_is_not_built_again(tmp_path: Path) -> None:
    live = tmp_path / "live.yaml"
    live.write_text(run("examples/eksclusters/gpu.yaml", "-o", "yaml"))
    assert built("examples/eksclusters/gpu.yaml", "--observed", str(live)) == []
    manifest = (ROOT / "examples/eksclusters/gpu.yaml").read_text()
    pool = "    - {name: more, role: GPU, instanceType: g6.2xlarge, zones: [us-east-1b], gpu: {acceleratorType: l4}}"
    (cluster,) = built("-", "--observed", str(live), stdin=manifest.rstrip() + "\n" + pool)
    assert cluster["kinds"] == {"LaunchTemplate": 1, "NodeGroup": 1}
    assert cluster["minutes"] == TYPICAL["NodeGroup"]


def test_a_tree_counts_what_only_generated_names_tell_apart() -> None:
    text = run("examples/eksclusters/gpu.yaml")
    (cluster,) = built("examples/eksclusters/gpu.yaml")
    tree = text.partition("Clusters to build")[0]
    for kind, count in cluster["kinds"].items():
        if count > 1 and kind not in ("ProviderConfig", "Usage"):
            assert f"├─ {count} {kind}\n" in tree
    assert "Release: chart cluster-autoscaler" in tree


def test_an_existing_cluster_is_not_built() -> None:
    assert built("examples/getting-started") == []


def test_the_readme_shows_what_is_printed() -> None:
    command = "$ .venv/bin/modelplane plan examples/inferenceclusters/eks.yaml examples/inferenceclasses\n"
    excerpt = (ROOT / "README.md").read_text().partition(command)[2].partition("```")[0]
    assert "Clusters to build" in excerpt
    assert excerpt in run("examples/inferenceclusters/eks.yaml", CLASSES)
