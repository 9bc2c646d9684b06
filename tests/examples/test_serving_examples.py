"""The examples of serving: each plan places what it should, splits traffic as it says, and what scales can scale it."""

import json
import re
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.validate import validate_composed

from modelplane.kube.objects import Object
from modelplane.simulate import World

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
FLEET = [
    "examples/inferenceclasses",
    "examples/inferencegateways",
    "examples/inferenceclusters/three-regions.yaml",
]
KEDA = sorted((EXAMPLES / "autoscaling" / "keda").glob("*.yaml"))


def modelplane(*arguments: str) -> str:
    command = [str(Path(sys.executable).with_name("modelplane")), *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def plan(name: str, *options: str) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(
        modelplane("plan", "-o", "json", *FLEET, f"examples/modeldeployments/{name}.yaml", *options)
    )
    assert [w for w in report["warnings"] if "without a modelCacheRef" not in w] == []
    return report


def places(report: dict[str, Any]) -> dict[str, list[tuple[str, str, int]]]:
    """Cluster, pool and devices of every replica, by deployment; all of them serve."""
    found: dict[str, list[tuple[str, str, int]]] = {}
    for placed in report["placements"]:
        assert placed["ready"]
        (devices,) = placed["devices"]
        found.setdefault(placed["deployment"], []).append((placed["cluster"], devices["pool"], devices["count"]))
    return {name: sorted(where) for name, where in found.items()}


def shares(report: dict[str, Any]) -> Counter[str]:
    """Percent of the only service's traffic, by model: the name of an endpoint without its suffix."""
    (service,) = report["services"]
    assert service["ready"]
    found: Counter[str] = Counter()
    for backend in service["backends"]:
        found[re.sub(r"-[a-z0-9]{10}$", "", backend["endpoint"])] += backend["share"]
    return found


def test_a_gang_takes_two_whole_nodes_of_one_pool() -> None:
    report = plan("gang")
    assert places(report) == {"kimi-k2": [("virginia", "h200", 16)]}
    assert report["unplaced"] == []


def test_a_gang_needs_the_memory_that_only_one_pool_has() -> None:
    (unplaced,) = plan("gang", "--replicas", "kimi-k2=2")["unplaced"]
    assert (unplaced["missing"], unplaced["reason"]) == (1, "InsufficientCapacity")
    (unplaced,) = plan("gang", "--without", "virginia")["unplaced"]
    assert "memory" in unplaced["nearest"][0]


def test_prefill_and_decode_share_a_cluster() -> None:
    (where,) = places(plan("disaggregated"))["qwen-235b"]
    assert where[1:] == ("h100", 16), "two prefill pods of four GPUs and a decode pod of eight"


def test_a_canary_takes_its_weight_however_many_replicas_there_are() -> None:
    report = plan("canary")
    assert {name: len(where) for name, where in places(report).items()} == {"llama-canary": 1, "llama-stable": 3}
    assert shares(report) == {"llama-stable": pytest.approx(95), "llama-canary": pytest.approx(5)}
    assert len({cluster for cluster, *_ in places(report)["llama-stable"]}) == 3
    more = plan("canary", "--replicas", "llama-canary=2")
    assert shares(more)["llama-canary"] == pytest.approx(5, abs=0.1)


def test_overflow_takes_traffic_only_while_nothing_of_ours_serves() -> None:
    assert shares(plan("overflow")) == {"qwen-32b": pytest.approx(100), "qwen-32b-elsewhere": 0}
    none = plan("overflow", "--replicas", "qwen-32b=0")
    assert none["placements"] == []
    assert shares(none) == {"qwen-32b-elsewhere": pytest.approx(100)}


def test_replicas_are_spread_over_regions() -> None:
    report = plan("multi-region")
    assert Counter(cluster for cluster, *_ in places(report)["assistant"]) == {
        "virginia": 2,
        "oregon": 2,
        "frankfurt": 2,
    }
    assert {pool for _, pool, _ in places(report)["assistant"]} == {"h100"}, "the smallest that is enough"
    assert shares(report) == {"assistant": pytest.approx(100, abs=0.5)}


def test_a_spread_is_a_preference() -> None:
    report = plan("multi-region", "--without", "frankfurt")
    assert Counter(cluster for cluster, *_ in places(report)["assistant"]) == {"virginia": 3, "oregon": 3}
    assert report["unplaced"] == []


@pytest.mark.parametrize("file", KEDA, ids=lambda f: f.stem)
def test_keda_accepts_what_scales(file: Path) -> None:
    (scaler,) = yaml.safe_load_all(file.read_text())
    assert validate_composed(scaler) == []
    target = scaler["spec"]["scaleTargetRef"]
    known = {
        (d["apiVersion"], d["kind"], d["metadata"]["name"], d["metadata"].get("namespace"))
        for example in EXAMPLES.glob("modeldeployments/*.yaml")
        for d in yaml.safe_load_all(example.read_text())
    }
    wanted = (target["apiVersion"], target["kind"], target["name"], scaler["metadata"]["namespace"])
    assert wanted in known
    assert 0 <= scaler["spec"]["minReplicaCount"] < scaler["spec"]["maxReplicaCount"] <= 100


def test_both_ranges_are_shown() -> None:
    assert {f.stem: yaml.safe_load(f.read_text())["spec"]["minReplicaCount"] for f in KEDA} == {
        "one-to-many": 1,
        "zero-to-many": 0,
    }


def test_keda_refuses_what_is_wrong() -> None:
    scaler = yaml.safe_load(KEDA[0].read_text())
    assert validate_composed({**scaler, "spec": {**scaler["spec"], "minReplicaCount": "one"}})
    assert validate_composed({**scaler, "spec": {k: v for k, v in scaler["spec"].items() if k != "triggers"}})


@pytest.mark.parametrize("file", KEDA, ids=lambda f: f.stem)
def test_the_query_counts_the_requests_of_the_service(world: World, file: Path) -> None:
    """A router of Traefik is named after its route, the gateway and the entry point.

    Source: https://github.com/traefik/traefik/blob/v3.7.9/pkg/provider/kubernetes/gateway/httproute.go
    """
    for path in FLEET:
        world.apply(ROOT / path)
    world.apply(EXAMPLES / "modeldeployments" / "multi-region.yaml")
    world.settle()
    (route,) = world.select("HTTPRoute", "ml-team")
    (trigger,) = yaml.safe_load(file.read_text())["spec"]["triggers"]
    pattern = re.search(r'router=~"([^"]+)"', trigger["metadata"]["query"])
    assert pattern
    parent = route["spec"]["parentRefs"][0]
    gateway = f"gw-{parent['namespace']}-{parent['name']}-ep-web-0-1f2e3d4c@kubernetesgateway"
    router = f"httproute-ml-team-{_suffixed(route)}-{gateway}"
    assert re.fullmatch(pattern[1], router)
    assert not re.fullmatch(pattern[1], router.replace("-assistant-", "-assistant-two-"))


def _suffixed(route: Object) -> str:
    """Name of a composed route as Crossplane generates it: the composite's name, a dash and twelve hex digits."""
    assert route["metadata"]["labels"]["crossplane.io/composite"] == "assistant"
    return "assistant-0123456789ab"


def test_the_guide_to_scaling_says_what_works() -> None:
    guide = (EXAMPLES / "autoscaling" / "README.md").read_text()
    (command,) = re.findall(r"^\$ modelplane (plan .*?[^\\])$", guide, re.MULTILINE | re.DOTALL)
    assert "assistant" in modelplane(*shlex.split(command.replace("\\\n", " ")))
    for link in re.findall(r"\]\(([^)h][^)]*)\)", guide):
        assert (EXAMPLES / "autoscaling" / link).exists(), link
    assert "kubectl -n ml-team scale modeldeployment assistant --replicas=8" in guide
