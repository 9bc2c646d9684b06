"""Every example is admitted, composes what API servers accept, and settles; the first plan says what it should."""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.validate import validate_composed

from modelplane.kube.objects import Object
from modelplane.simulate import Admission, World, definitions
from modelplane.simulate.store import group_of

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
FILES = sorted(p for p in EXAMPLES.glob("*/*.yaml"))
STARTED = EXAMPLES / "getting-started"


def documents(file: Path) -> list[Object]:
    return [d for d in yaml.safe_load_all(file.read_text()) if d]


def modelplane(*arguments: str, seed: str = "0", stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("modelplane")), *arguments]
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    return subprocess.run(command, cwd=ROOT, env=environment, input=stdin, capture_output=True, text=True, check=False)


@functools.cache
def plan(*arguments: str) -> dict[str, Any]:
    done = modelplane("plan", "-o", "json", *arguments)
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def test_every_kind_has_an_example() -> None:
    kinds = {d["kind"] for file in FILES for d in documents(file)}
    assert {kind for _, kind in definitions.load()} <= kinds


@pytest.mark.parametrize("file", FILES, ids=lambda f: f"{f.parent.name}/{f.name}")
def test_admitted_with_a_comment(file: Path) -> None:
    assert file.read_text().startswith("# ")
    for document in documents(file):
        Admission().admit(document)


@pytest.mark.parametrize("file", FILES, ids=lambda f: f"{f.parent.name}/{f.name}")
def test_one_reconcile_composes_what_is_valid(world: World, file: Path) -> None:
    for obj in world.apply(file):
        name, namespace = obj["metadata"]["name"], obj["metadata"].get("namespace", "")
        answer = world.reconcile(obj["kind"], name, namespace)
        assert not answer.fatal
        assert {k: p for k, v in answer.desired.items() if (p := validate_composed(v))} == {}


def test_all_of_them_settle_in_one_control_plane(world: World) -> None:
    for file in FILES:
        world.apply(file)
    settled = world.settle()
    assert settled.errors == {}
    assert world.deleted == []
    problems = {}
    for obj in world.store:
        composite = (group_of(obj["apiVersion"]), obj["kind"]) in definitions.load()
        bare = {k: v for k, v in obj.items() if k != "status" or composite}
        if found := validate_composed(bare):
            problems[f"{obj['kind']} {obj['metadata']['name']}"] = found
    assert problems == {}


def test_render_knows_every_function() -> None:
    declared = [d["metadata"]["name"] for d in documents(EXAMPLES / "functions.yaml")]
    assert sorted(declared) == sorted(d.function for d in definitions.load().values())
    for document in documents(EXAMPLES / "functions.yaml"):
        assert document["metadata"]["annotations"] == {
            "render.crossplane.io/runtime": "Development",
            "render.crossplane.io/runtime-development-target": "127.0.0.1:9443",
        }


def test_getting_started_is_placed_on_the_right_hardware() -> None:
    report = plan(str(STARTED))
    placed = [(p["deployment"], p["cluster"], p["devices"], p["ready"]) for p in report["placements"]]
    h100 = [{"pool": "h100", "device": "gpu", "count": 4}]
    assert placed == [
        ("llama-70b", "west", h100, True),
        ("llama-70b", "west", h100, True),
        ("qwen-8b", "east", [{"pool": "l4", "device": "gpu", "count": 1}], True),
    ]
    used = {(p["cluster"], p["pool"]): (p["used"], p["total"], p["nodes_used"]) for p in report["pools"]}
    assert used == {("east", "l4"): (1, 4, 1), ("west", "h100"): (8, 16, 1)}


def test_getting_started_says_why_one_is_not_placed() -> None:
    (unplaced,) = plan(str(STARTED))["unplaced"]
    assert (unplaced["deployment"], unplaced["missing"]) == ("wants-80gi", 1)
    assert unplaced["reason"] == "InsufficientCapacity"
    assert unplaced["nearest"] == ["needs memory >= 80Gi; pool h100 of west has 81559Mi: 361Mi short"]


def test_getting_started_answers_on_a_url() -> None:
    (service,) = plan(str(STARTED))["services"]
    assert service["url"] == "http://192.0.2.10/ml-team/chat"
    assert service["ready"]
    shares = {}
    for backend in service["backends"]:
        shares[backend["cluster"]] = shares.get(backend["cluster"], 0) + backend["share"]
        assert backend["healthy"]
    assert shares == {"east": 90.0, "west": 10.0}


def test_getting_started_warns_of_nothing_else() -> None:
    assert plan(str(STARTED))["warnings"] == []


@pytest.mark.parametrize("output", ["table", "yaml", "json"])
def test_same_manifests_same_plan(output: str) -> None:
    one, two = (modelplane("plan", str(STARTED), "-o", output, seed=seed) for seed in ("1", "2"))
    assert (one.returncode, one.stdout) == (0, two.stdout)


def test_without_a_cluster() -> None:
    report = plan(str(STARTED), "--without", "west")
    assert {p["cluster"] for p in report["placements"]} == {"east"}
    assert {u["deployment"] for u in report["unplaced"]} == {"llama-70b", "wants-80gi"}


def test_with_more_replicas() -> None:
    report = plan(str(STARTED), "--replicas", "llama-70b=5")
    assert sum(p["deployment"] == "llama-70b" for p in report["placements"]) == 4
    assert [u["missing"] for u in report["unplaced"] if u["deployment"] == "llama-70b"] == [1]


def test_from_live_objects() -> None:
    live = modelplane("plan", "-o", "yaml", str(STARTED)).stdout
    objects = [d for d in yaml.safe_load_all(live) if d]
    assert objects
    file = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    same = modelplane("plan", "-o", "json", "--observed", "-", str(STARTED), stdin=file)
    assert same.returncode == 0, same.stderr
    assert json.loads(same.stdout)["changes"] == {"added": [], "changed": [], "deleted": []}
    fewer = modelplane("plan", "-o", "json", "--observed", "-", "--replicas", "llama-70b=1", str(STARTED), stdin=file)
    deleted = json.loads(fewer.stdout)["changes"]["deleted"]
    assert sum(name.startswith("ModelReplica ml-team/llama-70b") for name in deleted) == 1
    assert all("llama-70b" in name for name in deleted)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nowhere"], "nowhere: no such file or folder"),
        ([str(STARTED), "--without", "north"], "no such InferenceCluster; there are: east, west"),
        ([str(STARTED), "--replicas", "nobody=1"], "no ModelDeployment nobody"),
        ([str(STARTED), "--replicas", "x"], "must be NAME=N"),
        ([str(EXAMPLES / "functions.yaml")], "no Modelplane resource"),
    ],
)
def test_errors_say_what_to_do(arguments: list[str], says: str) -> None:
    done = modelplane("plan", *arguments)
    assert done.returncode == 1
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_an_invalid_manifest_is_named_by_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text((STARTED / "models.yaml").read_text().replace("replicas: 2", "replicas: 101"))
    line = next(i for i, text in enumerate(file.read_text().splitlines(), 1) if "replicas: 101" in text)
    done = modelplane("plan", str(file))
    assert done.returncode == 1
    assert f"{file}:{line}: ModelDeployment ml-team/llama-70b: spec.replicas: " in done.stderr


def test_render_prints_a_composite_and_what_it_composes() -> None:
    done = modelplane("render", str(EXAMPLES / "modelendpoints" / "external.yaml"))
    assert done.returncode == 0, done.stderr
    kinds = [d["kind"] for d in yaml.safe_load_all(done.stdout) if d]
    assert kinds == ["ModelEndpoint", "EndpointSlice", "Service"]
