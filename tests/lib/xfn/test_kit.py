"""The kit's promises, on a function of the test's own."""

import pytest
from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from google.protobuf import struct_pb2
from hypothesis import given
from hypothesis import strategies as st

from modelplane.kube.objects import Resource, dig
from modelplane.xfn import Function, Request, wire
from modelplane.xfn.request import views
from modelplane.xfn.response import observed_intent
from modelplane.xfn.runner import Runner


def _request(xr=None, observed=None, required=None):
    message = fnv1.RunFunctionRequest()
    message.meta.tag = "t"
    wire.fill(
        message.observed.composite.resource,
        xr or {"apiVersion": "t/v1", "kind": "Thing", "metadata": {"name": "x", "namespace": "n"}},
    )
    for key, raw in (observed or {}).items():
        wire.fill(message.observed.resources[key].resource, raw)
    for key, found in (required or {}).items():
        message.required_resources[key].SetInParent()
        for raw in found:
            wire.fill(message.required_resources[key].items.add().resource, raw)
    return message


def _run(compose, request=None, conditions=("Works",)):
    function = Function("thing", "t/v1", "Thing", conditions, compose)
    return Runner({"Thing": lambda: function}, now=lambda: 0.0).run(request or _request())


def _object(name="a", ready=True, **spec):
    status = "True" if ready else "False"
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name,
            "namespace": "n",
            "labels": {"crossplane.io/composite": "x", "mine": "1"},
            "uid": "u",
        },
        "spec": spec,
        "status": {"conditions": [{"type": "Ready", "status": status}]},
    }


def _desired(answer, key):
    return wire.from_struct(answer.desired.resources[key].resource)


def test_observed_resource_that_nobody_mentions_is_held():
    answer = _run(lambda req, rsp: None, _request(observed={"a": _object(size=3)}))
    assert _desired(answer, "a") == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "namespace": "n", "labels": {"mine": "1"}},
        "spec": {"size": 3},
    }
    assert answer.desired.resources["a"].ready == fnv1.READY_TRUE


def test_dropped_resource_leaves():
    answer = _run(lambda req, rsp: rsp.drop("a"), _request(observed={"a": _object()}))
    assert not answer.desired.resources


@pytest.mark.parametrize("ready, want", [(True, fnv1.READY_TRUE), (False, fnv1.READY_FALSE), (None, fnv1.READY_FALSE)])
def test_readiness_is_always_explicit(ready, want):
    def compose(req, rsp):
        rsp.ready = ready

    assert _run(compose).desired.composite.ready == want


def test_exception_is_fatal_and_tells_no_traceback():
    def compose(req, rsp):
        rsp.compose("b", {"apiVersion": "v1", "kind": "ConfigMap"}, ready=True)
        raise ValueError("secret detail")

    answer = _run(compose, _request(observed={"a": _object()}))
    (result,) = answer.results
    assert result.severity == fnv1.SEVERITY_FATAL
    assert "secret detail" not in result.message
    assert "Traceback" not in result.message
    assert answer.desired.composite.ready == fnv1.READY_FALSE


def test_unreadable_observed_resource_is_fatal_not_dropped():
    answer = _run(lambda req, rsp: None, _request(observed={"a": {"kind": "ConfigMap"}}))
    assert [r.severity for r in answer.results] == [fnv1.SEVERITY_FATAL]
    assert "composed resource a cannot be read" in answer.results[0].message


def test_fatal_carries_every_owned_condition():
    xr = {
        "apiVersion": "t/v1",
        "kind": "Thing",
        "metadata": {"name": "x"},
        "status": {"conditions": [{"type": "Works", "status": "True", "reason": "Fine", "message": "m"}]},
    }

    def compose(req, rsp):
        rsp.condition("Other", False, "Broken", "why")
        rsp.fatal("stop")

    answer = _run(compose, _request(xr), conditions=("Works", "Other"))
    assert [(c.type, c.status, c.reason) for c in answer.conditions] == [
        ("Other", fnv1.STATUS_CONDITION_FALSE, "Broken"),
        ("Works", fnv1.STATUS_CONDITION_TRUE, "Fine"),
    ]


def test_event_only_when_a_condition_changes():
    def compose(req, rsp):
        rsp.condition("Works", False, "Broken", "why", problem=True)

    first = _run(compose)
    assert [r.message for r in first.results] == ["Works: why"]
    xr = {
        "apiVersion": "t/v1",
        "kind": "Thing",
        "metadata": {"name": "x"},
        "status": {"conditions": [{"type": "Works", "status": "False", "reason": "Broken", "message": "older words"}]},
    }
    assert not _run(compose, _request(xr)).results


def test_ttl_follows_requirements():
    assert _run(lambda req, rsp: None).meta.ttl.seconds == 300
    answer = _run(lambda req, rsp: rsp.require("r", "v1", "Pod", match_name="p"))
    assert answer.meta.ttl.seconds == 60


def test_required_tells_not_fetched_from_absent():
    seen = {}

    def compose(req, rsp):
        seen.update(never=req.required("never"), absent=req.required("absent"))

    _run(compose, _request(required={"absent": []}))
    assert seen == {"never": None, "absent": []}


def test_other_kind_is_refused_without_a_change():
    answer = _run(lambda req, rsp: None, _request({"apiVersion": "t/v1", "kind": "Other"}))
    assert answer.results[0].severity == fnv1.SEVERITY_FATAL
    assert "serves composites of kind Thing" in answer.results[0].message


def test_same_input_same_bytes():
    def compose(req, rsp):
        for key in "cab":
            rsp.compose(key, {"apiVersion": "v1", "kind": "ConfigMap", "data": {k: k for k in key + "zyx"}}, ready=True)
        rsp.status = {"b": 1, "a": [1, True, None, 0.5]}

    answers = {_run(compose).SerializeToString(deterministic=True) for _ in range(5)}
    assert len(answers) == 1


def test_null_entries_are_left_out():
    def compose(req, rsp):
        rsp.compose("a", {"kind": "ConfigMap", "x": None, "y": {}}, ready=False)

    assert _desired(_run(compose), "a") == {"kind": "ConfigMap", "y": {}}


def test_held_secret_manifest_loses_its_payload():
    raw = {
        "apiVersion": "kubernetes.m.crossplane.io/v1alpha1",
        "kind": "Object",
        "metadata": {"name": "s"},
        "spec": {
            "forProvider": {
                "manifest": {
                    "apiVersion": "v1",
                    "kind": "Secret",
                    "data": {"k": "aHVudGVyMg=="},
                    "stringData": {"k": "v"},
                }
            }
        },
    }
    intent = observed_intent(Resource.of(raw))
    assert intent["spec"]["forProvider"]["manifest"] == {"apiVersion": "v1", "kind": "Secret"}
    assert "data" in raw["spec"]["forProvider"]["manifest"]


COPIED = {"patchesFrom": {"apiVersion": "v1", "kind": "ConfigMap", "name": "c"}, "toFieldPath": "data[k]"}


@pytest.mark.parametrize(
    ("references", "left"),
    [
        ([COPIED], set()),
        ([{"dependsOn": {"name": "other"}}, COPIED], set()),
        ([{"dependsOn": {"name": "other"}}], {"data", "binaryData"}),
        (None, {"data", "binaryData"}),
        ("garbled", {"data", "binaryData"}),
    ],
)
def test_held_config_map_loses_what_was_copied_into_it(references, left):
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "v"}, "binaryData": {"b": "dg=="}}
    raw = {
        "apiVersion": "kubernetes.m.crossplane.io/v1alpha1",
        "kind": "Object",
        "metadata": {"name": "c"},
        "spec": {"references": references, "forProvider": {"manifest": manifest}},
    }
    kept = observed_intent(Resource.of(raw))["spec"]["forProvider"]["manifest"]
    assert set(kept) == {"apiVersion", "kind", *left}
    assert "data" in manifest


@pytest.mark.parametrize(
    "conditions, good",
    [
        ([("Ready", "True", 2), ("Synced", "True", 2)], True),
        ([("Ready", "True", None), ("Synced", "True", None)], True),
        ([("Ready", "True", 1), ("Synced", "True", 2)], False),
        ([("Ready", "True", 2), ("Synced", "False", 2)], False),
        ([("Ready", "True", 2)], False),
    ],
)
def test_good_needs_ready_and_synced_of_this_generation(conditions, good):
    raw = {
        "metadata": {"generation": 2},
        "status": {
            "conditions": [
                {"type": t, "status": s} | ({"observedGeneration": g} if g is not None else {})
                for t, s, g in conditions
            ]
        },
    }
    assert Resource.of(raw).good is good


def _name(raw):
    return raw["metadata"]["name"]


def _shuffled(payload):
    """The same object with its top-level entries in another order, as Go encodes maps."""
    entries = []
    at = 0
    while at < len(payload):
        size, end, shift = 0, at + 1, 0
        while True:
            byte = payload[end]
            size |= (byte & 127) << shift
            end, shift = end + 1, shift + 7
            if byte < 128:
                break
        entries.append(payload[at : end + size])
        at = end + size
    return b"".join(reversed(entries))


def test_an_equal_object_is_read_once_however_it_is_encoded():
    raw = _object("viewed", size=4) | {"data": {"a": "1"}}
    message = _request(required={"r": [raw]})
    payload = message.SerializeToString()
    inner = message.required_resources["r"].items[0].resource.SerializeToString()
    assert inner in payload
    assert _shuffled(inner) != inner
    other = payload.replace(inner, _shuffled(inner))
    before = views.read
    seen = [Request(p, lambda: 0.0).views("r", _name) for p in (payload, other, payload)]
    assert seen == [["viewed"]] * 3
    assert views.read - before == 1


def test_managed_fields_are_not_read():
    struct = _request(
        _object("m") | {"metadata": {"name": "m", "managedFields": [{"manager": "x"}]}}
    ).observed.composite
    assert wire.load(struct.resource.SerializeToString())["metadata"] == {"name": "m"}


_JSON = st.recursive(
    st.booleans() | st.text() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), _JSON, max_size=6))
def test_objects_come_back_as_they_went(raw):
    struct = struct_pb2.Struct()
    wire.fill(struct, raw)
    assert wire.from_struct(struct) == raw
    reference = struct_pb2.Struct()
    reference.update(raw)
    assert wire.canonical(struct) == wire.canonical(reference)


@pytest.mark.parametrize("length", [0, 1, 127, 128, 16383, 16384, 70000])
def test_lengths_at_the_borders_of_varints(length):
    struct = struct_pb2.Struct()
    wire.fill(struct, {"k" * max(1, length): "v" * length, "l": ["x" * length]})
    assert wire.from_struct(struct) == {"k" * max(1, length): "v" * length, "l": ["x" * length]}


def test_what_json_has_no_form_for_is_refused():
    with pytest.raises(TypeError, match="cannot send a set"):
        wire.fill(struct_pb2.Struct(), {"a": {1}})


def test_parts_are_what_the_whole_says():
    raw = _object("p", nested={"list": [{"a": 1}], "none": {}})
    payload = _request(raw).observed.composite.resource.SerializeToString()
    for path in [("metadata", "name"), ("spec",), ("spec", "nested", "list"), ("spec", "nope", "x"), ("kind", "x"), ()]:
        assert wire.part(wire.parse(payload), path) == dig(wire.load(payload), *path)
