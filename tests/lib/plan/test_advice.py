"""What a plan warns of although it is allowed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
CLASSES = "examples/inferenceclasses"
ZERO = "cannot scale a pool of DRA devices up from zero"
ZONE = "every pool is in zone us-east-1a"
EFA = "fabric EFA is not known for instance type g6.2xlarge"
UNUSED = "no deployment of this plan can use pool l4"
GANG = "kimi-k2: engine vllm runs on 2 nodes without a modelCacheRef"


def warnings(*arguments: str, stdin: str = "") -> str:
    command = [str(Path(sys.executable).with_name("modelplane")), "plan", "-o", "json", *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True, input=stdin, cwd=ROOT)
    return "\n".join(json.loads(done.stdout)["warnings"])


CLUSTERS = ("inferenceclusters/eks", "eksclusters/gpu")


@pytest.mark.parametrize("example", CLUSTERS)
@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, ()),
        ({"maxNodeCount: 6": "maxNodeCount: 6\n      minNodeCount: 0"}, (ZERO,)),
        ({"nodeCount: 2\n      maxNodeCount: 6": "nodeCount: 0\n      maxNodeCount: 6"}, (ZERO,)),
        ({"[us-east-1a, us-east-1b]": "[us-east-1a]"}, (ZONE,)),
        ({"[us-east-1a, us-east-1b]": "[us-east-1a]\n      fabric: EFA"}, (ZONE, EFA)),
    ],
    ids=["none", "zero", "empty", "zone", "efa"],
)
def test_clusters(example: str, changes: dict[str, str], says: tuple[str, ...]) -> None:
    manifest = (ROOT / f"examples/{example}.yaml").read_text().replace("      minNodeCount: 1\n", "")
    for old, new in changes.items():
        assert old in manifest
        manifest = manifest.replace(old, new)
    said = warnings("-", CLASSES, stdin=manifest)
    assert [w for w in (ZERO, ZONE, EFA) if w in said] == [w for w in (ZERO, ZONE, EFA) if w in says]
    if not says:
        assert said == ""


def test_a_fixed_pool_of_none_does_not_scale() -> None:
    manifest = (ROOT / "examples/inferenceclusters/eks.yaml").read_text()
    fixed = manifest.replace("nodeCount: 2\n", "nodeCount: 0\n", 1)
    fixed = fixed.replace("      minNodeCount: 1\n      maxNodeCount: 6\n", "")
    assert "maxNodeCount" not in fixed
    assert ZERO not in warnings("-", CLASSES, stdin=fixed)


def test_google_scales_from_zero() -> None:
    manifest = (ROOT / "examples/gkeclusters/gpu.yaml").read_text()
    said = warnings("-", stdin=manifest.replace("maxNodeCount: 10", "maxNodeCount: 10\n      minNodeCount: 0"))
    assert ZERO not in said
    assert "every pool is in zone us-central1-a" in said


@pytest.mark.parametrize(("model", "unused"), [("gang", True), ("single-gpu", False), (None, False)])
def test_a_pool_that_nobody_can_use(model: str | None, unused: bool) -> None:
    models = [f"examples/modeldeployments/{model}.yaml"] if model else []
    said = warnings("examples/inferenceclusters/eks.yaml", CLASSES, *models)
    assert (UNUSED in said) is unused


def test_a_pool_that_no_deployment_selects() -> None:
    manifest = (ROOT / "examples/modeldeployments/single-gpu.yaml").read_text()
    elsewhere = manifest.replace("region: us-east", "region: nowhere")
    assert elsewhere != manifest
    assert UNUSED in warnings("examples/inferenceclusters/eks.yaml", CLASSES, "-", stdin=elsewhere)


def test_a_gang_without_a_cache() -> None:
    manifest = (ROOT / "examples/modeldeployments/gang.yaml").read_text()
    cached = manifest.replace(
        "    spec:\n      engines:", "    spec:\n      modelCacheRef: {name: kimi}\n      engines:"
    )
    assert cached != manifest
    assert GANG in warnings("-", stdin=manifest)
    assert GANG not in warnings("-", stdin=cached)
