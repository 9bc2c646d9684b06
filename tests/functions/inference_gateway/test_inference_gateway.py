"""InferenceGateway: definitions, Traefik and Gateway in order; what exists stays through every gap."""

from typing import Any

import pytest
from tests.functions.grown import losses
from tests.harness import Call, assert_nothing_lost, assert_waiting
from tests.validate import validate_composed

DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": "gatewayclasses.gateway.networking.k8s.io",
        "annotations": {"gateway.networking.k8s.io/bundle-version": "v1.5.1"},
    },
}
MISSING: dict[str, Any] = {"gateway-api-definition": []}
INSTALLED = {"gateway-api-definition": [DEFINITION]}
ALL = {
    "provider-config-helm",
    "gateway-api",
    "traefik",
    "usage-config-by-traefik",
    "gateway-class",
    "gateway",
    "usage-traefik-by-gateway",
}


def gateway(status: Any = None, name: str = "default", traefik: Any = None, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "InferenceGateway",
        "metadata": {"name": name},
        "spec": {"backend": "Traefik", "traefik": traefik or {"version": "41.1.0"}, **spec},
        "status": status or {},
    }


def observe(answer: Any, **statuses: Any) -> dict[str, Any]:
    """What was desired, as it is once everything works; a status of None leaves the object out."""
    conditions = [{"type": t, "status": "True"} for t in ("Ready", "Synced", "Accepted", "Programmed")]
    good = {"conditions": conditions, "addresses": [{"type": "IPAddress", "value": "192.0.2.1"}]}
    found = {}
    for key, made in answer.desired.items():
        status = statuses.get(key.replace("-", "_"), good)
        if status is not None:
            found[key] = {**made, "metadata": {"name": f"{key}-x", **made["metadata"]}, "status": status}
    return found


def valid(answer: Any) -> None:
    for key, made in answer.desired.items():
        assert validate_composed(made) == [], key


def settle(call: Call, xr: Any, required: Any = MISSING) -> Any:
    """Call until nothing new is desired; every step may only add."""
    answer = call(xr, required=required)
    for _ in range(8):
        after = call(xr, observed=observe(answer), required=required)
        assert set(answer.desired) <= set(after.desired)
        if after.desired == answer.desired:
            return after
        answer = after
    raise AssertionError("does not settle")


def test_create_in_order(call: Call) -> None:
    xr = gateway()
    first = call(xr, required=MISSING)
    valid(first)
    assert set(first.desired) == {"provider-config-helm"}
    assert_waiting(first)
    second = call(xr, observed=observe(first), required=MISSING)
    assert set(second.desired) == {"provider-config-helm", "gateway-api"}
    assert second.conditions["ControllerReady"].reason == "Installing"
    held_up = call(xr, observed=observe(second, gateway_api={}))
    assert set(held_up.desired) == {"provider-config-helm", "gateway-api"}
    assert "gateway-api" in held_up.conditions["ControllerReady"].message
    third = call(xr, observed=observe(second))
    assert "traefik" in third.desired
    assert "gateway" not in third.desired
    waiting = call(xr, observed=observe(third, traefik={}))
    assert "gateway" not in waiting.desired
    assert_waiting(waiting)
    fourth = call(xr, observed=observe(third))
    assert {"gateway", "gateway-class", "usage-config-by-traefik"} <= set(fourth.desired)
    assert fourth.conditions["Programmed"].status == "False"
    assert "addresses" not in fourth.status


def test_settled(call: Call) -> None:
    answer = settle(call, gateway())
    valid(answer)
    assert set(answer.desired) == ALL
    assert answer.ready is True
    assert answer.status == {"address": "192.0.2.1", "addresses": [{"type": "IPAddress", "value": "192.0.2.1"}]}
    assert answer.conditions["ControllerReady"].reason == "ControllerHealthy"
    assert answer.conditions["Programmed"].status == "True"
    assert answer.requirements == {}
    assert answer.ttl == 300
    said = [
        {"type": t, "status": "True", "reason": r}
        for t, r in (("ControllerReady", "ControllerHealthy"), ("Programmed", "Programmed"))
    ]
    again = call(gateway({**answer.status, "conditions": said}), observed=observe(answer))
    assert again.results == []
    assert again.desired == answer.desired


def test_what_is_composed(call: Call) -> None:
    made = settle(call, gateway()).desired
    assert made["provider-config-helm"]["metadata"]["name"] == "modelplane-in-cluster"
    assert made["provider-config-helm"]["spec"]["credentials"] == {"source": "InjectedIdentity"}
    api = made["gateway-api"]["spec"]
    assert "Delete" not in api["managementPolicies"]
    assert "*" not in api["managementPolicies"]
    assert api["forProvider"]["values"]["crds"]["gatewayAPI"] == {"enabled": True, "channel": "standard"}
    traefik = made["traefik"]["spec"]["forProvider"]
    assert traefik["chart"] == {
        "name": "traefik",
        "repository": "https://traefik.github.io/charts",
        "version": "41.1.0",
    }
    assert traefik["namespace"] == "traefik-system"
    values = traefik["values"]
    assert values["providers"]["kubernetesIngress"]["enabled"] is False
    assert values["gateway"]["enabled"] is values["gatewayClass"]["enabled"] is False
    assert values["ports"]["web"]["transport"]["respondingTimeouts"]["readTimeout"] == "600s"
    assert made["gateway-class"]["metadata"]["name"] == "traefik"
    assert made["gateway"]["metadata"] == {"name": "inference-gateway", "namespace": "modelplane-system"}
    assert made["gateway"]["spec"]["listeners"] == [
        {"name": "http", "port": 8000, "protocol": "HTTP", "allowedRoutes": {"namespaces": {"from": "All"}}}
    ]


def test_usages_keep_what_others_need(call: Call) -> None:
    made = settle(call, gateway()).desired
    traefik = made["usage-traefik-by-gateway"]["spec"]
    assert traefik["of"]["kind"] == "Release"
    assert traefik["by"] == {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "Gateway",
        "resourceRef": {"name": "inference-gateway"},
    }
    labels = traefik["of"]["resourceSelector"]["matchLabels"]
    assert labels.items() <= made["traefik"]["metadata"]["labels"].items()
    config = made["usage-config-by-traefik"]["spec"]
    assert config["of"]["resourceRef"] == {"name": "modelplane-in-cluster"}
    assert config["by"]["resourceSelector"]["matchLabels"] == labels
    assert all(made[k]["spec"]["replayDeletion"] for k in made if k.startswith("usage-"))


@pytest.mark.parametrize("lost", ["traefik", "gateway_api", "gateway", "gateway_class", "provider_config_helm"])
def test_one_object_loses_its_status(call: Call, lost: str) -> None:
    before = settle(call, gateway())
    answer = call(gateway(before.status), observed=observe(before, **{lost: {}}))
    assert set(answer.desired) == ALL
    assert answer.desired == before.desired
    assert answer.ready is (lost == "provider_config_helm")
    assert answer.status == before.status


@pytest.mark.parametrize("gone", ["traefik", "gateway_api", "gateway", "provider_config_helm"])
def test_one_object_disappears(call: Call, gone: str) -> None:
    before = settle(call, gateway())
    answer = call(gateway(before.status), observed=observe(before, **{gone: None}), required=MISSING)
    assert_nothing_lost(answer)
    assert answer.status == before.status
    assert answer.ready is (gone == "provider_config_helm")


@pytest.mark.parametrize(
    "spec, words",
    [
        ({"traefik": {"version": "40.2.0"}}, ["spec.traefik.version", "40.2.0", "41.1.0"]),
        ({"traefik": {"version": "41.0.9"}}, ["41.0.9"]),
        ({"traefik": {"version": "latest"}}, ["latest"]),
        ({"traefik": {"version": "41.1.0-rc.1"}}, ["41.1.0-rc.1"]),
        ({"name": "other"}, ["metadata.name", "other", "default"]),
        (
            {
                "traefik": {
                    "version": "41.1.0",
                    "loadBalancer": "MetalLB",
                    "metallb": {"addressPool": "10.0.0.9-10.0.0.1"},
                }
            },
            ["addressPool", "10.0.0.9-10.0.0.1"],
        ),
        (
            {"traefik": {"version": "41.1.0", "loadBalancer": "MetalLB", "metallb": {"addressPool": "x"}}},
            ["addressPool"],
        ),
        ({"traefik": {"version": "41.1.0", "loadBalancer": "MetalLB"}}, ["addressPool"]),
    ],
)
def test_an_invalid_spec_changes_nothing(call: Call, spec: Any, words: list[str]) -> None:
    before = settle(call, gateway())
    for observed in ({}, observe(before)):
        answer = call(gateway(before.status, **spec), observed=observed)
        assert set(answer.desired) == set(observed)
        assert answer.ready is False
        assert answer.status == before.status
        condition = answer.conditions["ControllerReady"]
        assert (condition.status, condition.reason) == ("False", "InvalidSpec")
        assert all(w in condition.message for w in words)
        assert answer.warnings


def test_no_address_yet(call: Call) -> None:
    before = settle(call, gateway())
    programmed = {"conditions": [{"type": "Programmed", "status": "True"}]}
    answer = call(gateway(), observed=observe(before, gateway=programmed))
    assert answer.ready is False
    assert answer.status == {"addresses": []}
    assert answer.conditions["Programmed"].reason == "NoAddress"
    assert "MetalLB" in answer.conditions["Programmed"].message


def test_a_hostname_and_several_addresses(call: Call) -> None:
    before = settle(call, gateway())
    found = [{"type": "Hostname", "value": "lb.example.com"}, {"type": "IPAddress", "value": "2001:db8::1"}]
    good = {"conditions": [{"type": "Programmed", "status": "True"}], "addresses": found}
    answer = call(gateway(), observed=observe(before, gateway=good))
    assert answer.status == {"address": "2001:db8::1", "addresses": found}


def test_not_programmed_says_why(call: Call) -> None:
    before = settle(call, gateway())
    bad = {
        "conditions": [{"type": "Programmed", "status": "False", "message": "no listener"}],
        "listeners": [
            {"conditions": [{"type": "ResolvedRefs", "status": "False", "message": "Secret cert not found"}]}
        ],
    }
    answer = call(gateway(before.status), observed=observe(before, gateway=bad))
    assert "Secret cert not found" in answer.conditions["Programmed"].message
    stale = {"conditions": [{"type": "Programmed", "status": "True", "observedGeneration": 1}]}
    observed = observe(before, gateway=stale)
    observed["gateway"]["metadata"]["generation"] = 2
    assert call(gateway(before.status), observed=observed).ready is False


def test_gateway_api_is_there_already(call: Call) -> None:
    first = call(gateway(), required=MISSING)
    answer = call(gateway(), observed=observe(first), required=INSTALLED)
    assert set(answer.desired) == {"provider-config-helm"}
    assert answer.conditions["ControllerReady"].reason == "GatewayAPIConflict"
    assert "External" in answer.conditions["ControllerReady"].message
    by_helm = {**DEFINITION["metadata"], "annotations": {"meta.helm.sh/release-name": "gateway-api"}}
    ours = {"gateway-api-definition": [{**DEFINITION, "metadata": by_helm}]}
    assert "gateway-api" in call(gateway(), observed=observe(first), required=ours).desired


def test_external(call: Call) -> None:
    xr = gateway(gatewayAPI="External")
    first = call(xr, required=INSTALLED)
    assert first.requirements["gateway-api-definition"].match_name == DEFINITION["metadata"]["name"]
    answer = settle(call, xr, INSTALLED)
    assert set(answer.desired) == ALL - {"gateway-api"}
    assert answer.ready is True
    missing = call(xr, observed=observe(first), required=MISSING)
    assert missing.conditions["ControllerReady"].reason == "GatewayAPIMissing"
    assert "traefik" not in missing.desired
    metadata = {"name": "x", "annotations": {"gateway.networking.k8s.io/bundle-version": "v1.3.0"}}
    old = call(xr, observed=observe(first), required={"gateway-api-definition": [{**DEFINITION, "metadata": metadata}]})
    assert old.conditions["ControllerReady"].reason == "GatewayAPITooOld"
    assert "v1.3.0" in old.conditions["ControllerReady"].message


def test_managed_to_external_lets_go_of_the_release_only(call: Call) -> None:
    before = settle(call, gateway())
    answer = call(gateway(before.status, gatewayAPI="External"), observed=observe(before))
    assert_nothing_lost(answer, "gateway-api")
    assert answer.ready is True


def test_tls(call: Call) -> None:
    answer = settle(call, gateway(tls={"secretName": "cert"}))
    valid(answer)
    (listener,) = answer.desired["gateway"]["spec"]["listeners"]
    assert (listener["name"], listener["port"], listener["protocol"]) == ("https", 8443, "HTTPS")
    assert listener["tls"]["certificateRefs"] == [{"group": "", "kind": "Secret", "name": "cert"}]


def test_routes_from_some_namespaces(call: Call) -> None:
    answer = settle(call, gateway(routes={"namespaceSelector": {"matchLabels": {"team": "ml"}}}))
    valid(answer)
    (listener,) = answer.desired["gateway"]["spec"]["listeners"]
    assert listener["allowedRoutes"]["namespaces"] == {"from": "Selector", "selector": {"matchLabels": {"team": "ml"}}}


METALLB = {"version": "41.1.0", "loadBalancer": "MetalLB", "metallb": {"addressPool": "172.18.255.200-172.18.255.250"}}


def test_metallb_only_when_asked(call: Call) -> None:
    xr = gateway(traefik=METALLB)
    first = call(xr, required=MISSING)
    second = call(xr, observed=observe(first), required=MISSING)
    assert "metallb" in second.desired
    assert "metallb-pool" not in call(xr, observed=observe(second, metallb={}), required=MISSING).desired
    answer = settle(call, xr)
    valid(answer)
    assert set(answer.desired) - ALL == {
        "namespace-metallb",
        "metallb",
        "metallb-pool",
        "metallb-l2",
        "usage-config-by-metallb",
    }
    pool = answer.desired["metallb-pool"]
    assert pool["spec"]["addresses"] == ["172.18.255.200-172.18.255.250"]
    assert answer.desired["metallb-l2"]["spec"]["ipAddressPools"] == [pool["metadata"]["name"]]
    assert call(xr, observed=observe(answer, metallb={})).ready is False
    off = call(gateway(answer.status), observed=observe(answer))
    assert set(off.desired) == ALL


@pytest.mark.parametrize("pool", ["10.0.0.0/28", "10.0.0.1-10.0.0.1", "fd00::/120"])
def test_address_pools(call: Call, pool: str) -> None:
    xr = gateway(traefik={**METALLB, "metallb": {"addressPool": pool}})
    assert settle(call, xr).desired["metallb-pool"]["spec"]["addresses"] == [pool]


def test_nothing_lost_whatever_goes_missing(call: Call) -> None:
    before = settle(call, gateway(traefik=METALLB))
    found = losses(call, gateway(before.status, traefik=METALLB), observe(before), MISSING)
    assert [loss for loss in found if "claims readiness" not in loss] == []
