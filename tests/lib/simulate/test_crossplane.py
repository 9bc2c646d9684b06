"""The simulated Crossplane against what Crossplane 2.3.4 was seen to do; functions here are made for the purpose."""

from collections.abc import Callable

import pytest

from modelplane.kube.objects import Object
from modelplane.labels import VERSION
from modelplane.simulate import RefusedError, World
from modelplane.simulate.crossplane import child_name
from modelplane.xfn import Function, Request, Response
from modelplane.xfn.caller import Caller, in_process
from modelplane.xfn.runner import Runner

ENDPOINT = {
    "apiVersion": VERSION,
    "kind": "ModelEndpoint",
    "metadata": {"name": "e", "namespace": "a"},
    "spec": {"url": "https://example.com/v1"},
}
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}


def world(compose: Callable[[Request, Response], None], *conditions: str) -> World:
    function = Function("test", VERSION, "ModelEndpoint", conditions, compose)
    made = World(Caller(in_process(Runner({"ModelEndpoint": lambda: function}, now=lambda: 0.0))))
    made.apply(ENDPOINT)
    return made


def conditions(made: World) -> dict[str, tuple[str, str]]:
    xr = made.get("ModelEndpoint", "e", "a")
    assert xr is not None
    return {c["type"]: (c["status"], c["reason"]) for c in xr["status"]["conditions"]}


def test_a_composed_resource_gets_name_owner_label_and_key() -> None:
    made = world(lambda req, rsp: rsp.compose("cm", CONFIG_MAP, ready=True))
    made.settle()
    (config,) = made.select("ConfigMap")
    xr = made.get("ModelEndpoint", "e", "a")
    assert xr is not None
    assert config["metadata"]["name"] == child_name("e-", xr["metadata"]["uid"], "cm")
    assert config["metadata"]["namespace"] == "a"
    assert config["metadata"]["labels"] == {"crossplane.io/composite": "e"}
    assert config["metadata"]["annotations"] == {"crossplane.io/composition-resource-name": "cm"}
    assert config["metadata"]["ownerReferences"][0]["uid"] == xr["metadata"]["uid"]
    assert made.composed("ModelEndpoint", "e", "a") == {"cm": config}


def test_names_are_those_that_crossplane_generates() -> None:
    uid = "578b7c58-2658-59a9-bd6c-e397516024f1"
    assert child_name("elsewhere-", uid, "endpointslice-fqdn") == "elsewhere-554da2ac6478"
    assert len(child_name("e" * 80, uid, "x")) == 63


@pytest.mark.parametrize(
    ("explicit", "composed", "want"),
    [(None, True, "False"), (True, False, "True"), (False, True, "False"), (True, True, "True")],
)
def test_explicit_readiness_wins(explicit: bool | None, composed: bool, want: str) -> None:
    def compose(req: Request, rsp: Response) -> None:
        rsp.compose("cm", CONFIG_MAP, ready=composed)
        rsp.ready = explicit

    made = world(compose)
    made.settle()
    assert conditions(made)["Ready"][0] == want


def test_what_leaves_desired_state_is_deleted_and_recorded() -> None:
    asked = [True]

    def compose(req: Request, rsp: Response) -> None:
        if asked[0]:
            rsp.compose("cm", CONFIG_MAP, ready=True)
        else:
            rsp.drop("cm")

    made = world(compose)
    made.settle()
    asked[0] = False
    made.reconcile("ModelEndpoint", "e", "a")
    made.settle()
    assert made.select("ConfigMap") == []
    assert [(d.key.kind, d.why) for d in made.deleted] == [("ConfigMap", "left desired state")]


def test_fatal_changes_nothing_but_conditions() -> None:
    broken = [False]

    def compose(req: Request, rsp: Response) -> None:
        rsp.condition("RoutingReady", True, "Fine")
        rsp.ready = True
        rsp.status["routing"] = {"backendName": "x"}
        if broken[0]:
            rsp.fatal("cannot know")
        else:
            rsp.compose("cm", CONFIG_MAP, ready=True)
            rsp.condition("Other", True, "Fine")

    made = world(compose, "RoutingReady")
    made.settle()
    broken[0] = True
    made.reconcile("ModelEndpoint", "e", "a")
    assert made.deleted == []
    assert len(made.select("ConfigMap")) == 1
    assert conditions(made)["RoutingReady"] == ("True", "Fine")
    assert conditions(made)["Other"] == ("Unknown", "FatalError"), "Crossplane does this to conditions it is not given"
    assert conditions(made)["Ready"][0] == "True"
    assert conditions(made)["Synced"] == ("False", "ReconcileError")
    assert made.get("ModelEndpoint", "e", "a")["status"]["routing"] == {"backendName": "x"}  # type: ignore[index]


@pytest.mark.parametrize(("stages", "settles"), [(1, True), (5, True), (6, False)])
def test_requirements_must_settle_in_six_calls(stages: int, settles: bool) -> None:
    def compose(req: Request, rsp: Response) -> None:
        for stage in range(stages):
            rsp.require(f"r{stage}", "v1", "ConfigMap", match_name=f"c{stage}", namespace="a")
            if not req.answered(f"r{stage}"):
                break

    made = world(compose)
    done = made.crossplane.reconcile(made.key("ModelEndpoint", "e", "a"))
    assert done.calls == min(6, stages + 1)
    assert bool(done.error) is not settles


def test_requirements_by_name_labels_and_namespace() -> None:
    seen: dict[str, list[str]] = {}

    def compose(req: Request, rsp: Response) -> None:
        rsp.require("name", "v1", "ConfigMap", match_name="x", namespace="b")
        rsp.require("labels", "v1", "ConfigMap", match_labels={"l": "1"})
        rsp.require("space", "v1", "ConfigMap", match_labels={"l": "1"}, namespace="b")
        rsp.require("all", "v1", "ConfigMap")
        rsp.require("none", "v1", "ConfigMap", match_name="nope", namespace="b")
        for name in ("name", "labels", "space", "all", "none"):
            found = req.required(name)
            if found is not None:
                seen[name] = [f"{r.namespace}/{r.name}" for r in found]

    made = world(compose)
    for space, name, labels in (("b", "x", {"l": "1"}), ("c", "y", {"l": "1"}), ("c", "z", {})):
        made.apply({**CONFIG_MAP, "metadata": {"name": name, "namespace": space, "labels": labels}})
    made.reconcile("ModelEndpoint", "e", "a")
    assert seen == {
        "name": ["b/x"],
        "labels": ["b/x", "c/y"],
        "space": ["b/x"],
        "all": ["b/x", "c/y", "c/z"],
        "none": [],
    }


def test_a_namespaced_composite_composes_nothing_cluster_scoped() -> None:
    usage = {"apiVersion": "protection.crossplane.io/v1beta1", "kind": "ClusterUsage", "spec": {"of": {}}}
    made = world(lambda req, rsp: rsp.compose("u", usage, ready=True))
    made.settle()
    assert "cluster scoped" in made.crossplane.reconcile(made.key("ModelEndpoint", "e", "a")).error
    assert conditions(made)["Synced"] == ("False", "ReconcileError")


def test_a_status_that_is_not_in_the_schema_is_an_error() -> None:
    def compose(req: Request, rsp: Response) -> None:
        rsp.status["nonsense"] = 1

    made = world(compose)
    made.settle()
    assert "status.nonsense" in made.crossplane.reconcile(made.key("ModelEndpoint", "e", "a")).error


def test_an_invalid_composed_composite_is_unsynced_and_the_rest_applied() -> None:
    def compose(req: Request, rsp: Response) -> None:
        rsp.compose("bad", {"apiVersion": VERSION, "kind": "ModelService", "spec": {"endpoints": []}}, ready=True)
        rsp.compose("cm", CONFIG_MAP, ready=True)

    made = world(compose)
    made.crossplane.reconcile(made.key("ModelEndpoint", "e", "a"))
    assert conditions(made)["Synced"] == ("False", "ReconcileError")
    assert len(made.select("ConfigMap")) == 1


def test_a_deleted_composite_is_not_reconciled_and_its_children_go() -> None:
    calls = []

    def compose(req: Request, rsp: Response) -> None:
        calls.append(1)
        rsp.compose("cm", CONFIG_MAP, ready=True)

    made = world(compose)
    made.settle()
    before = len(calls)
    made.delete("ModelEndpoint", "e", "a")
    made.settle()
    assert len(calls) == before
    assert len(made.store) == 0


def test_fields_of_others_stay_and_dropped_fields_go() -> None:
    data = [{"a": "1", "b": "2"}]

    def compose(req: Request, rsp: Response) -> None:
        rsp.compose("cm", {**CONFIG_MAP, "data": data[0]}, ready=True)

    made = world(compose)
    made.settle()
    (config,) = made.select("ConfigMap")
    made.store.put({**config, "data": {**config["data"], "theirs": "3"}})
    data[0] = {"a": "9"}
    made.reconcile("ModelEndpoint", "e", "a")
    assert made.select("ConfigMap")[0]["data"] == {"a": "9", "theirs": "3"}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"spec": {}}, "spec.url"),
        ({"spec": {"url": "ftp://x"}}, "url must be http"),
        ({"metadata": {"name": "e"}}, "metadata.namespace"),
        ({"apiVersion": "modelplane.ai/v1"}, "v1alpha1"),
        ({"spec": {"url": "https://x", "extra": 1}}, "spec.extra"),
    ],
)
def test_admission_refuses(change: Object, says: str) -> None:
    made = world(lambda req, rsp: None)
    with pytest.raises(RefusedError, match=says):
        made.apply({**ENDPOINT, **change})
