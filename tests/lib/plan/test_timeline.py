"""Clusters that a plan would build: what of, in which order, and what it warns of."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples"


def run(*arguments: str, stdin: str = "") -> str:
    command = [str(Path(sys.executable).with_name("modelplane")), "plan", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, input=stdin, cwd=ROOT).stdout


@pytest.mark.parametrize(
    "example, order",
    [
        ("eks", ["VPC", "Cluster", "NodeGroup", "ServingStack"]),
        ("gke", ["Network", "Cluster", "NodePool", "ServingStack"]),
    ],
)
def test_what_waits_for_what(example: str, order: list[str]) -> None:
    paths = (str(EXAMPLES / "inferenceclusters" / f"{example}.yaml"), str(EXAMPLES / "inferenceclasses"))
    report: dict[str, Any] = json.loads(run(*paths, "-o", "json"))
    (built,) = report["built"]
    assert built["objects"] == sum(built["kinds"].values()) == sum(sum(s["kinds"].values()) for s in built["steps"])
    first = [next(at for at, s in enumerate(built["steps"]) if kind in s["kinds"]) for kind in order]
    assert first == sorted(first)
    assert first[0] < first[1] < first[2]
    minutes = [s["minute"] for s in built["steps"]]
    assert minutes == sorted(set(minutes))
    assert built["minutes"] >= minutes[-1]
    waits = built["steps"][first[1] + 1]
    assert waits["after"] == "Cluster"
    text = run(*paths)
    assert f"{built['objects']} objects, ready after about {built['minutes']} minutes (estimate)" in text


def test_a_single_zone_is_warned_of() -> None:
    manifest = (EXAMPLES / "inferenceclusters" / "eks.yaml").read_text()
    single = manifest.replace("[us-east-1a, us-east-1b]", "[us-east-1a]")
    assert single != manifest
    classes = str(EXAMPLES / "inferenceclasses")
    assert "every pool is in zone us-east-1a" in run("-", classes, stdin=single)
    assert "every pool is in zone" not in run("-", classes, stdin=manifest)


def test_an_existing_cluster_is_not_built() -> None:
    report = json.loads(run(str(EXAMPLES / "getting-started"), "-o", "json"))
    assert report["built"] == []
