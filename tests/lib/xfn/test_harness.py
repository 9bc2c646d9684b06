"""The harness itself: a call arrives, an observed resource is held."""

from tests.harness import Call, assert_nothing_lost

XR = {
    "apiVersion": "modelplane.ai/v1alpha1",
    "kind": "ModelCache",
    "metadata": {"name": "a", "namespace": "team"},
    "spec": {"source": "HuggingFace"},
}
CONFIG_MAP = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "c", "namespace": "team"},
    "data": {"a": "b"},
}


def test_call(call: Call) -> None:
    answer = call(XR, observed={"config": CONFIG_MAP})
    assert answer.desired["config"]["data"] == {"a": "b"}
    assert answer.ready is False
    assert_nothing_lost(answer)


def test_foreign_kind_is_fatal(call: Call) -> None:
    answer = call({**XR, "kind": "Pod"}, observed={"config": CONFIG_MAP})
    assert "Pod" in answer.fatal
    assert_nothing_lost(answer)
