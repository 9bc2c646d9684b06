"""ModelEndpoint: a Service, a slice and for https a policy; a bad URL keeps what was set up and is not ready."""

from typing import Any

import pytest
from tests.functions.grown import grow, losses
from tests.harness import Call, assert_nothing_lost, assert_waiting
from tests.validate import validate_composed

from modelplane import names

BACKEND = names.backend("ml-team", "west")
GATEWAY = {
    "apiVersion": "modelplane.ai/v1alpha1",
    "kind": "InferenceGateway",
    "metadata": {"name": "default"},
    "status": {"addresses": []},
}


def endpoint(url: Any = "http://192.0.2.10/ml-team/qwen-abc/v1", status: Any = None, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "ModelEndpoint",
        "metadata": {"name": "west", "namespace": "ml-team"},
        "spec": {"url": url, **spec},
        "status": status or {},
    }


def observe(answer: Any) -> dict[str, Any]:
    return {
        key: {**made, "metadata": {"name": f"{key}-x", **made["metadata"], "resourceVersion": "7", "uid": key}}
        for key, made in answer.desired.items()
    }


def valid(answer: Any) -> None:
    for key, made in answer.desired.items():
        assert validate_composed(made) == [], key


def test_create(call: Call) -> None:
    answer = call(endpoint())
    valid(answer)
    assert set(answer.desired) == {"service", "endpointslice-ipv4"}
    service, found = answer.desired["service"], answer.desired["endpointslice-ipv4"]
    assert service["metadata"]["name"] == BACKEND
    assert "selector" not in service["spec"]
    assert service["spec"]["ports"] == [{"name": "http", "port": 80, "targetPort": 80, "protocol": "TCP"}]
    assert found["metadata"]["labels"]["kubernetes.io/service-name"] == BACKEND
    assert found["endpoints"] == [{"addresses": ["192.0.2.10"], "conditions": {"ready": True}}]
    assert found["ports"][0]["name"] == "http"
    assert answer.ready is False
    assert answer.conditions["RoutingReady"].reason == "WaitingForBackend"
    assert answer.status == {"routing": {}} or not answer.status
    assert answer.ttl == 300


def test_steady(call: Call) -> None:
    first = call(endpoint())
    said = [{"type": "RoutingReady", "status": "True", "reason": "BackendConfigured"}]
    answer = call(endpoint(status={"conditions": said}), observed=observe(first))
    assert answer.desired == first.desired
    assert answer.ready is True
    assert answer.status == {"routing": {"backendName": BACKEND}}
    assert all(answer.readiness.values())
    assert answer.results == []


@pytest.mark.parametrize(
    "url, spec, family, address",
    [
        ("http://[2001:db8::7]:8080/v1", {}, "IPv6", "2001:db8::7"),
        ("http://api.example.com/v1", {}, "FQDN", "api.example.com."),
        ("http://10.1.2.3:9000", {}, "IPv4", "10.1.2.3"),
    ],
)
def test_addresses(call: Call, url: str, spec: Any, family: str, address: str) -> None:
    answer = call(endpoint(url, **spec))
    valid(answer)
    found = answer.desired[f"endpointslice-{family.lower()}"]
    assert found["addressType"] == family
    assert found["endpoints"][0]["addresses"] == [address]


def test_https_is_verified(call: Call) -> None:
    xr = endpoint("https://openrouter.ai/api/v1")
    answer = call(xr, required={"gateway": [GATEWAY]})
    valid(answer)
    assert answer.requirements["gateway"].match_name == "default"
    assert answer.desired["service"]["spec"]["ports"][0]["port"] == 443
    policy = answer.desired["tls-policy"]["spec"]
    assert policy["validation"] == {"hostname": "openrouter.ai", "wellKnownCACertificates": "System"}
    assert policy["targetRefs"] == [{"group": "", "kind": "Service", "name": BACKEND}]
    assert answer.ready is False
    assert call(xr, observed=observe(answer), required={"gateway": [GATEWAY]}).ready is True


def test_https_port_is_kept_behind_443(call: Call) -> None:
    xr = endpoint(
        "https://10.0.0.9:8443/v1", tls={"serverName": "Models.Internal.Example", "caSecretRef": {"name": "ca"}}
    )
    answer = call(xr, required={"gateway": [GATEWAY]})
    valid(answer)
    assert answer.desired["service"]["spec"]["ports"][0] == {
        "name": "https",
        "port": 443,
        "targetPort": 8443,
        "protocol": "TCP",
    }
    assert answer.desired["endpointslice-ipv4"]["ports"][0]["port"] == 8443
    validation = answer.desired["tls-policy"]["spec"]["validation"]
    assert validation["hostname"] == "models.internal.example"
    assert validation["caCertificateRefs"] == [{"group": "", "kind": "Secret", "name": "ca"}]


@pytest.mark.parametrize("gateways", [[], [{**GATEWAY, "status": {}}]])
def test_https_waits_for_a_gateway(call: Call, gateways: Any) -> None:
    answer = call(endpoint("https://openrouter.ai/api/v1"), required={"gateway": gateways})
    assert set(answer.desired) == {"service", "endpointslice-fqdn"}
    assert answer.conditions["RoutingReady"].reason == "WaitingForGateway"
    assert_waiting(answer)
    assert answer.ttl == 15


def test_the_gateway_disappears(call: Call) -> None:
    xr = endpoint("https://openrouter.ai/api/v1", {"routing": {"backendName": BACKEND}})
    before = call(xr, required={"gateway": [GATEWAY]})
    for required in ({}, {"gateway": []}):
        answer = call(xr, observed=observe(before), required=required)
        assert answer.desired == before.desired
        assert answer.ready is True


def test_policy_rejected(call: Call) -> None:
    xr = endpoint("https://openrouter.ai/api/v1")
    observed = observe(call(xr, required={"gateway": [GATEWAY]}))
    said = [{"type": "Accepted", "status": "False", "message": "CA Secret not found"}]
    observed["tls-policy"]["status"] = {"ancestors": [{"conditions": said}]}
    answer = call(xr, observed=observed, required={"gateway": [GATEWAY]})
    assert answer.ready is False
    assert answer.conditions["RoutingReady"].reason == "TLSPolicyRejected"
    assert "CA Secret not found" in answer.conditions["RoutingReady"].message


@pytest.mark.parametrize(
    "spec, reason, words",
    [
        ({"url": "http://127.0.0.1/v1"}, "InvalidURL", ["127.0.0.1", "loopback"]),
        ({"url": "http://kubernetes.default.svc/v1"}, "InvalidURL", ["inside the control plane"]),
        ({"url": "ftp://api.example.com"}, "InvalidURL", ["http:// or https://"]),
        ({"url": 7}, "InvalidURL", ["spec.url"]),
        ({"rewritePath": "/a/../b"}, "InvalidURL", ["spec.rewritePath", "/a/../b"]),
        ({"hostname": "a b"}, "InvalidURL", ["spec.hostname", "a b"]),
        ({"url": "https://192.0.2.1/v1"}, "InvalidURL", ["spec.tls.serverName"]),
        ({"url": "https://a.example/v1", "tls": {"serverName": "10.0.0.1"}}, "InvalidURL", ["spec.tls.serverName"]),
        (
            {"url": "https://a.example/v1", "tls": {"caSecretRef": {"name": "ca", "key": "root.pem"}}},
            "InvalidURL",
            ["caSecretRef.key", "root.pem", "ca.crt"],
        ),
        ({"auth": {"secretRef": {"name": "s", "key": "k"}}}, "CredentialsUnsupported", ["spec.auth", "Traefik"]),
    ],
)
def test_an_invalid_spec_keeps_everything(call: Call, spec: Any, reason: str, words: list[str]) -> None:
    observed = observe(call(endpoint()))
    xr = {**endpoint(status={"routing": {"backendName": BACKEND}})}
    xr["spec"] = {**xr["spec"], **spec}
    for seen in ({}, observed):
        answer = call(xr, observed=seen)
        assert set(answer.desired) == set(seen)
        assert_nothing_lost(answer)
        assert answer.ready is False
        assert answer.status == {"routing": {"backendName": BACKEND}}
        condition = answer.conditions["RoutingReady"]
        assert (condition.status, condition.reason) == ("False", reason)
        assert all(w in condition.message for w in words), condition.message
        assert answer.warnings
    kept = call(xr, observed=observed).desired
    assert kept["service"]["spec"] == observed["service"]["spec"]
    assert kept["endpointslice-ipv4"]["endpoints"] == observed["endpointslice-ipv4"]["endpoints"]


def test_another_kind_of_address_replaces_the_slice(call: Call) -> None:
    observed = observe(call(endpoint()))
    answer = call(endpoint("http://api.example.com/v1"), observed=observed)
    assert set(answer.desired) == {"service", "endpointslice-fqdn"}
    assert_nothing_lost(answer, "endpointslice-ipv4")
    assert answer.ready is False


def test_no_longer_https_drops_the_policy(call: Call) -> None:
    observed = observe(call(endpoint("https://a.example/v1"), required={"gateway": [GATEWAY]}))
    answer = call(endpoint("http://a.example/v1"), observed=observed)
    assert_nothing_lost(answer, "tls-policy")
    assert "tls-policy" not in answer.desired


def test_paused_is_healthy_and_takes_no_traffic(call: Call) -> None:
    observed = observe(call(endpoint()))
    answer = call(endpoint(paused=True), observed=observed)
    assert answer.ready is True
    assert answer.conditions["RoutingReady"].reason == "Paused"
    assert set(answer.desired) == set(observed)


@pytest.mark.parametrize("url", ["http://192.0.2.10/v1", "https://openrouter.ai/api/v1"])
def test_nothing_lost_whatever_goes_missing(call: Call, url: str) -> None:
    required = {"gateway": [GATEWAY]}
    xr, observed, answer = grow(call, endpoint(url), required)
    assert answer.ready is True
    found = [loss for loss in losses(call, xr, observed, required) if "claims readiness" not in loss]
    assert found == []
