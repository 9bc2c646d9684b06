"""What a hostile user writes: refused at the door with the field named, and harmless to a function that sees it anyway.

A shell is never composed, and nothing lands outside the user's own namespace on the workload cluster.
"""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.functions.grown import grow
from tests.functions.model_cache.test_model_cache import MAIN, cache, cluster, looked_up, report
from tests.functions.model_endpoint.test_model_endpoint import endpoint
from tests.functions.model_replica import fleet
from tests.harness import Call, assert_waiting

from modelplane import names
from modelplane.simulate.admission import Admission, RefusedError
from modelplane.xfn.caller import Answer

Object = dict[str, Any]
Change = Callable[[Object, Any], Any]

SHELL = ["$(id)", "`id`", "a;id", "a && id", "a|id", "a\nid", "a'b", 'a"b', "a>b", "\x00", "a\u202eb"]


def container(xr: Object) -> Object:
    spec = xr["spec"].get("template", {}).get("spec") or xr["spec"]
    found: Object = spec["engines"][0]["members"][0]["template"]["spec"]["containers"][0]
    return found


def http(xr: Object) -> Object:
    spec = xr["spec"].get("template", {}).get("spec") or xr["spec"]
    found: Object = spec["engines"][0].setdefault("http", {})
    return found


def deployment() -> Object:
    made = fleet.replica()
    engine = made["spec"]["engines"][0]
    member = engine["members"][0]
    for field in ("nodePoolName", "deviceRequests", "deviceUsage"):
        del member[field]
    member["nodeSelector"] = {"devices": [{"name": "gpu", "selectors": [{"cel": "device.driver == 'x'"}]}]}
    return {
        **made,
        "kind": "ModelDeployment",
        "metadata": {"name": "qwen", "namespace": "ml-team"},
        "spec": {"template": {"spec": {"engines": [engine]}}},
    }


REPLICA: dict[str, tuple[Change, list[Any], str]] = {
    "image": (lambda xr, v: container(xr).update(image=v), ["", "a b", "a\nb", "x" * 1025], "image"),
    "env name": (lambda xr, v: container(xr).update(env=[{"name": v}]), ["", "A=B", "A\nB", "A\x00", "É"], "env"),
    "reserved env": (
        lambda xr, v: container(xr).update(env=[{"name": v, "value": "x"}]),
        ["MODELPLANE_RANK", "LWS_GROUP_SIZE"],
        "env",
    ),
    "port": (lambda xr, v: http(xr).update(port=v), [0, -1, 65536, 10**12], "http.port"),
    "health path": (lambda xr, v: http(xr).update(healthPath=v), ["x", "file:///etc/passwd"], "healthPath"),
}
CACHE: dict[str, tuple[Change, list[Any], str]] = {
    "repo": (
        lambda xr, v: xr["spec"]["huggingFace"].update(repo=v),
        [*SHELL, "../x", "a/../b", "a/b/c", "/a", "https://x/y", "a/b?x", "a/b#x", "a b"],
        "repo",
    ),
    "revision": (
        lambda xr, v: xr["spec"]["huggingFace"].update(revision=v),
        [*SHELL, "../x", "a/../b", "/a", "a?b", "a" * 129],
        "revision",
    ),
}
ENDPOINT: dict[str, tuple[Change, list[Any], str]] = {
    "url": (
        lambda xr, v: xr["spec"].update(url=v),
        [
            *(f"http://{v}/v1" for v in SHELL),
            "file:///etc/passwd",
            "ftp://example.com",
            "http://localhost/v1",
            "http://127.0.0.1:8080",
            "http://169.254.169.254/latest/meta-data",
            "http://[::1]/v1",
            "http://2130706433/v1",
            "http://kubernetes.default.svc/api",
            "http://u:p@example.com/v1",
            "http://example.com:0/v1",
            "http://example.com:65536/v1",
            "http://example.com:x/v1",
            "http://example.com/../v1",
        ],
        "url",
    ),
}

LEFT_TO_THE_FUNCTION = {
    ("image", "a b"),
    ("image", "a\nb"),
    ("repo", "../x"),
    ("revision", "../x"),
    ("revision", "a/../b"),
    ("revision", "/a"),
}
"""Field and value that the schema admits; the function refuses them as it refuses all the others."""


def cases(table: dict[str, tuple[Change, list[Any], str]]) -> list[Any]:
    return [
        pytest.param(change, value, field, id=f"{what}: {value!r:.40}")
        for what, (change, values, field) in table.items()
        for value in values
    ]


def changed(xr: Object, change: Change, value: Any) -> Object:
    made = copy.deepcopy(xr)
    change(made, value)
    return made


@pytest.mark.parametrize(
    "kind, change, value, field",
    [
        pytest.param(kind, *case.values, id=f"{kind} {case.id}")
        for kind, table in (("ModelDeployment", REPLICA), ("ModelReplica", REPLICA), ("ModelCache", CACHE))
        for case in cases(table)
        if (case.values[2], case.values[1]) not in LEFT_TO_THE_FUNCTION
    ],
)
def test_refused_at_the_door(kind: str, change: Change, value: Any, field: str) -> None:
    xr = {"ModelDeployment": deployment, "ModelReplica": fleet.replica, "ModelCache": cache}[kind]()
    xr.pop("status", None)
    Admission().admit(copy.deepcopy(xr))
    with pytest.raises(RefusedError) as refused:
        Admission().admit(changed(xr, change, value))
    assert field in str(refused.value)


def shells(value: Any) -> list[str]:
    """Commands that start a shell, anywhere in what is composed."""
    found = []
    if isinstance(value, dict):
        for name, item in value.items():
            if name in ("command", "args") and isinstance(item, list):
                found += [w for w in item if w.rsplit("/", 1)[-1] in ("sh", "bash", "ash", "dash") or w == "-c"]
            found += shells(item)
    elif isinstance(value, list):
        for item in value:
            found += shells(item)
    return found


def assert_contained(answer: Answer, namespace: str) -> None:
    for key, made in answer.desired.items():
        assert shells(made) == [], key
        assert made["metadata"].get("namespace", namespace) == namespace, key
        remote = made.get("spec", {}).get("forProvider", {}).get("manifest", {})
        space = remote.get("metadata", {}).get("namespace")
        assert space in (None, names.tenant_namespace(namespace)), key
        for reference in made.get("spec", {}).get("references", []):
            assert reference["patchesFrom"]["namespace"] == namespace, key


def says(answer: Answer, field: str) -> str:
    said = " ".join([c.message for c in answer.conditions.values() if c.status != "True"] + answer.warnings)
    assert field in said, said
    assert "Traceback" not in said
    return said


@pytest.mark.parametrize("change, value, field", cases(REPLICA))
def test_a_replica_that_got_past_the_door(call: Call, change: Change, value: Any, field: str) -> None:
    xr, observed, before = grow(call, fleet.replica(), fleet.required(), fleet.report)
    for seen in ({}, observed):
        answer = call(changed(xr, change, value), seen, fleet.required())
        if (field == "healthPath" and value == "x") or field != "healthPath" or answer.ready is not True:
            assert_waiting(answer)
            says(answer, field.rsplit(".", 1)[-1])
        assert_contained(answer, "ml-team")
    assert answer.desired.keys() == before.desired.keys()


@pytest.mark.parametrize("change, value, field", cases(CACHE))
def test_a_cache_that_got_past_the_door(call: Call, change: Change, value: Any, field: str) -> None:
    xr, observed, _ = grow(call, cache(), looked_up(cluster("west")), report)
    for seen in ({}, observed):
        answer = call(changed(xr, change, value), seen, looked_up(cluster("west")))
        assert_waiting(answer)
        assert_contained(answer, "ml-team")
        says(answer, f"spec.huggingFace.{field}")
        assert set(answer.desired) == set(seen), "nothing new, nothing lost"
        if len(value) > 3:
            assert json.dumps(value)[1:-1] not in json.dumps(dict(answer.desired))


@pytest.mark.parametrize("change, value, field", cases(ENDPOINT))
def test_an_endpoint_that_got_past_the_door(call: Call, change: Change, value: Any, field: str) -> None:
    xr, observed, before = grow(call, endpoint())
    for seen in ({}, observed):
        answer = call(changed(xr, change, value), seen)
        assert_waiting(answer)
        says(answer, f"spec.{field}")
        assert set(answer.desired) == set(seen)
    assert answer.desired["service"] == before.desired["service"]


def test_what_is_legal_and_looks_hostile_stays_a_word(call: Call) -> None:
    xr = fleet.replica()
    container(xr).update(command=["vllm", *SHELL[:5]], args=SHELL[:5], env=[{"name": "A B;$(id)", "value": "`id`"}])
    _, _, answer = grow(call, xr, fleet.required(), fleet.report)
    assert_contained(answer, "ml-team")
    found = fleet.container(answer)
    assert (found["command"], found["args"]) == (["vllm", *SHELL[:5]], SHELL[:5])
    assert {"name": "A B;$(id)", "value": "`id`"} in found["env"]
    xr = cache(repo="-x/--y", include=["*; id", "$(id)"])
    wanted = names.digest("artifact", "HuggingFace", "-x/--y", "main", "$(id)", "*; id")
    assert wanted != MAIN
    _, _, answer = grow(call, xr, looked_up(cluster("west"), artifacts=[wanted]), report)
    assert_contained(answer, "ml-team")
    assert any(key.startswith("hydrate-") for key in answer.desired)
