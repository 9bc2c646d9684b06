"""ServingStack: order, values, holding, teardown, the gateway's address and trust."""

import base64
from collections.abc import Mapping
from typing import Any

import pytest
from tests.functions.grown import Object, conditions, grow, losses, observe
from tests.harness import Call, assert_nothing_lost
from tests.validate import validate_composed

from modelplane.xfn.caller import Answer

NAME = "west-serving-stack"
NAMESPACE = "modelplane-system"
GAIE = (
    "gaie-crd-inferencepools.inference.networking.k8s.io",
    "gaie-crd-inferenceobjectives.inference.networking.x-k8s.io",
)
PEM = "-----BEGIN CERTIFICATE-----\nTUlJQg==\n-----END CERTIFICATE-----\n"
PRIVATE = "-----BEGIN PRIVATE KEY-----\nTUlJQg==\n-----END PRIVATE KEY-----\n"

RELEASES = {
    "cert-manager",
    "prometheus",
    "leader-worker-set",
    "node-feature-discovery",
    "ai-gateway-crds",
    "envoy-gateway",
    "ai-gateway",
    "dra-driver",
}
OBJECTS = {*GAIE, "gateway-namespace", "gateway-proxy", "gateway-class", "gateway", "gateway-service"}
GKE_ONLY = {"dra-driver-namespace", "dra-driver-critical-pods-quota"}
COMBINATIONS = [
    ("Existing", "Uninstall"),
    ("Existing", "Abandon"),
    ("GKE", "Uninstall"),
    ("GKE", "Orphan"),
    ("EKS", "Orphan"),
]
CONFIGS = {"provider-config-kubernetes", "provider-config-helm"}


def stack(**spec: Any) -> Object:
    return {
        "apiVersion": "infrastructure.modelplane.ai/v1alpha1",
        "kind": "ServingStack",
        "metadata": {"name": NAME, "namespace": NAMESPACE, "generation": 1},
        "spec": {"secrets": [{"type": "Kubeconfig", "name": "west-kubeconfig", "key": "kubeconfig"}], **spec},
    }


def report(key: str, desired: Object) -> Object:
    if key == "gateway":
        addresses = [{"type": "Hostname", "value": "lb.example.com"}, {"type": "IPAddress", "value": "192.0.2.7"}]
        return {"atProvider": {"manifest": {"status": {"addresses": addresses}}}}
    return {}


def helm_values(answer: Answer, key: str) -> Any:
    return answer.desired[key]["spec"]["forProvider"]["values"]


def manifest(answer: Answer, key: str) -> Any:
    return answer.desired[key]["spec"]["forProvider"]["manifest"]


def keys(answer: Answer) -> set[str]:
    return {k for k in answer.desired if not k.startswith("usage-")}


def test_create(call: Call) -> None:
    answer = call(stack())
    assert set(answer.desired) == CONFIGS
    assert answer.ready is False
    assert answer.conditions["ComponentsReady"].reason == "Provisioning"
    assert "provider-config-kubernetes" in answer.conditions["ComponentsReady"].message
    assert answer.conditions["GatewayReady"].reason == "Provisioning"
    assert answer.status == {}
    for config in answer.desired.values():
        assert config["kind"] == "ProviderConfig"
        assert config["metadata"]["namespace"] == NAMESPACE
        assert config["spec"]["credentials"]["secretRef"] == {
            "namespace": NAMESPACE,
            "name": "west-kubeconfig",
            "key": "kubeconfig",
        }
    assert len({c["metadata"]["name"] for c in answer.desired.values()}) == 1


@pytest.mark.parametrize("platform, extra", [("Existing", set()), ("GKE", GKE_ONLY), ("EKS", set())])
def test_steady(call: Call, platform: str, extra: set[str]) -> None:
    xr, observed, answer = grow(call, stack(platform=platform), report=report)
    labelled = platform != "Existing"
    expected = CONFIGS | RELEASES | OBJECTS | extra
    assert keys(answer) == (expected - {"node-feature-discovery"} if labelled else expected)
    assert answer.ready is True
    assert all(answer.readiness.values())
    assert answer.status == {"gateway": {"address": "192.0.2.7", "addressType": "IPAddress"}}
    assert {c.type: (c.status, c.reason) for c in answer.conditions.values()} == {
        "ComponentsReady": ("True", "Ready"),
        "GatewayReady": ("True", "Ready"),
    }
    assert call(xr, observed).results == []
    assert answer.ttl == 300


def test_order(call: Call) -> None:
    """Nothing is composed before what it needs is Ready, whatever the order in which things become Ready."""
    needs: dict[str, set[str]] = {
        "envoy-gateway": {"ai-gateway-crds", *GAIE},
        "ai-gateway": {"envoy-gateway", "cert-manager", "ai-gateway-crds", *GAIE},
        "dra-driver": {"node-feature-discovery", "dra-driver-critical-pods-quota"},
        "dra-driver-critical-pods-quota": {"dra-driver-namespace"},
        "gateway-proxy": {"envoy-gateway", "gateway-namespace"},
        "gateway-class": {"envoy-gateway"},
        "gateway": {"gateway-class", "gateway-proxy", "gateway-namespace", "ai-gateway"},
        "gateway-service": {"gateway"},
    }
    xr = stack(platform="GKE", components={"nodeFeatureDiscovery": "Managed"})
    _, observed, answer = grow(call, xr, report=report)
    everything = keys(answer)
    for key in sorted(everything - CONFIGS):
        unready = {**observed, key: {**observed[key], "status": {"conditions": conditions(ready=False)}}}
        for waiting in sorted(k for k, needed in needs.items() if key in needed):
            rest = {k: v for k, v in unready.items() if k != waiting}
            assert waiting not in call(xr, rest).desired, f"{waiting} does not wait for {key}"
            assert waiting in call(xr, unready).desired, f"{waiting} is not held while {key} is not ready"
        rest = {k: v for k, v in observed.items() if k != key}
        assert key in call(xr, rest).desired, f"{key} is not composed although all it needs is ready"
    for key in sorted(everything - CONFIGS):
        alone = {k: v for k, v in observed.items() if k in CONFIGS}
        assert (key in call(xr, alone).desired) == (key not in needs), key


def test_a_config_that_does_not_exist_is_waited_for(call: Call) -> None:
    first = call(stack()).desired
    seen = {"provider-config-helm": observe(NAME, "provider-config-helm", first["provider-config-helm"])}
    assert set(call(stack(), seen).desired) == CONFIGS


@pytest.mark.parametrize("platform, teardown", COMBINATIONS)
def test_hold_matrix(call: Call, platform: str, teardown: str) -> None:
    xr = stack(platform=platform, teardown=teardown, gateway={"caSecretRef": {"name": "ca"}})
    required = {"gateway-ca": [secret({"ca.crt": PEM})]}
    xr, observed, answer = grow(call, xr, required, report)
    assert answer.ready is True
    assert list(losses(call, xr, observed, required)) == []


@pytest.mark.parametrize("platform, teardown", COMBINATIONS)
def test_everything_composed_is_valid(call: Call, platform: str, teardown: str) -> None:
    identity = {"type": "GoogleApplicationCredentials", "name": "key", "key": "private_key"}
    kubeconfig = {"type": "Kubeconfig", "name": "west", "key": "kubeconfig", "namespace": NAMESPACE}
    listeners = [
        {"name": "http", "port": 80, "protocol": "HTTP"},
        {"name": "https", "port": 443, "protocol": "HTTPS", "tls": {"secretName": "cert"}},
    ]
    service = {"annotations": {"example.com/a": "b"}, "sourceRanges": ["192.0.2.0/24"], "internal": True}
    xr = stack(
        platform=platform,
        teardown=teardown,
        secrets=[identity, kubeconfig],
        nvidiaDriverRoot="/home/kubernetes/bin/nvidia",
        gateway={"listeners": listeners, "service": service, "replicas": 3},
    )
    passes: list[Answer] = []
    grow(call, xr, report=report, passes=passes)
    for answer in passes:
        for key, desired in answer.desired.items():
            assert validate_composed(desired) == [], key


@pytest.mark.parametrize(
    "spec, words",
    [
        ({"secrets": []}, ["spec.secrets", "exactly one"]),
        ({"secrets": "x"}, ["spec.secrets", "exactly one"]),
        ({"secrets": [{"type": "Kubeconfig", "name": "a", "key": "k", "namespace": "b"}]}, ["[0].namespace", "'b'"]),
        ({"secrets": [{"type": "Token", "name": "a", "key": "k"}]}, ["[0].type", "'Token'", "Kubeconfig"]),
        ({"platform": "AKS"}, ["spec.platform", "'AKS'", "EKS, GKE, Existing"]),
        ({"teardown": "Keep"}, ["spec.teardown", "'Keep'", "Uninstall"]),
    ],
)
def test_an_invalid_spec_changes_nothing(call: Call, spec: Any, words: list[str]) -> None:
    _, observed, _ = grow(call, stack(), report=report)
    answer = call(stack(**spec), observed)
    assert_nothing_lost(answer)
    assert answer.ready is not True
    assert all(word in answer.fatal for word in words), answer.fatal
    assert answer.conditions["ComponentsReady"].reason == "InvalidSpec"


def test_a_component_that_is_provided_goes_and_counts_as_ready(call: Call) -> None:
    xr, observed, _ = grow(call, stack(platform="GKE"), report=report)
    xr["spec"]["components"] = {"certManager": "Provided", "nvidiaDraDriver": "Provided", "envoyGateway": "Provided"}
    answer = call(xr, observed)
    gone = {"cert-manager", "dra-driver", "envoy-gateway", *GKE_ONLY}
    usages = {f"usage-pc-{key}" for key in gone}
    order = {"usage-envoy-gw-by-gateway-class", "usage-envoy-gw-by-gateway-service"}
    assert set(answer.lost) == gone | usages | order
    assert answer.ready is True
    _, _, fresh = grow(call, stack(components=xr["spec"]["components"]), report=report)
    assert fresh.ready is True
    assert not gone & set(fresh.desired)


POLICIES: Mapping[str, Mapping[str, list[str]]] = {
    "Uninstall": {
        "cert-manager": ["*"],
        "gateway-class": ["*"],
        "gateway": ["*"],
        "gateway-service": ["Observe", "Delete"],
        "gateway-namespace": ["Observe", "Create", "Update"],
        GAIE[0]: ["Observe", "Create", "Update"],
    },
    "Orphan": {
        "cert-manager": ["Observe", "Create", "Update"],
        "gateway-class": ["Observe", "Create", "Update"],
        "gateway": ["*"],
        "gateway-service": ["Observe", "Delete"],
        "gateway-namespace": ["Observe", "Create", "Update"],
        GAIE[0]: ["Observe", "Create", "Update"],
    },
    "Abandon": {
        "cert-manager": ["Observe", "Create", "Update"],
        "gateway-class": ["Observe", "Create", "Update"],
        "gateway": ["Observe", "Create", "Update"],
        "gateway-service": ["Observe"],
        "gateway-namespace": ["Observe", "Create", "Update"],
        GAIE[0]: ["Observe", "Create", "Update"],
    },
}


@pytest.mark.parametrize("teardown", sorted(POLICIES))
def test_policies_follow_teardown(call: Call, teardown: str) -> None:
    _, _, answer = grow(call, stack(teardown=teardown), report=report)
    for key, policies in POLICIES[teardown].items():
        assert answer.desired[key]["spec"]["managementPolicies"] == policies, key


@pytest.mark.parametrize(
    "teardown, order, configs",
    [
        (
            "Uninstall",
            {
                "usage-gateway-service-by-gateway",
                "usage-gateway-class-by-gateway",
                "usage-envoy-gw-by-gateway-class",
                "usage-envoy-gw-by-gateway-service",
            },
            RELEASES | {"gateway-proxy", "gateway-class", "gateway", "gateway-service"},
        ),
        ("Orphan", {"usage-gateway-service-by-gateway"}, {"gateway", "gateway-service"}),
        ("Abandon", {"usage-gateway-service-by-gateway"}, set()),
    ],
)
def test_usages_follow_teardown(call: Call, teardown: str, order: set[str], configs: set[str]) -> None:
    _, observed, answer = grow(call, stack(teardown=teardown), report=report)
    usages = {k for k in answer.desired if k.startswith("usage-")}
    assert usages == order | {f"usage-pc-{key}" for key in configs}
    for key in configs:
        spec = answer.desired[f"usage-pc-{key}"]["spec"]
        assert spec["of"]["kind"] == "ProviderConfig"
        assert spec["of"]["apiVersion"].split("/")[0] == observed[key]["apiVersion"].split("/")[0]
        assert spec["by"]["resourceRef"]["name"] == observed[key]["metadata"]["name"]
        assert spec["replayDeletion"] is True


def test_abandoning_lets_go_of_what_would_wait(call: Call) -> None:
    xr, observed, _ = grow(call, stack(), report=report)
    xr["spec"]["teardown"] = "Abandon"
    answer = call(xr, observed)
    assert all(key.startswith("usage-") for key in answer.lost)
    assert set(answer.desired) - set(answer.lost) == CONFIGS | RELEASES | OBJECTS | {"usage-gateway-service-by-gateway"}


def test_values(call: Call) -> None:
    xr = stack(platform="GKE", nvidiaDriverRoot="/opt/nvidia", versions={"envoyGateway": "v1.8.3"})
    _, _, answer = grow(call, xr, report=report)
    assert helm_values(answer, "cert-manager")["crds"] == {"enabled": True, "keep": True}
    manager = helm_values(answer, "envoy-gateway")["config"]["envoyGateway"]["extensionManager"]
    assert manager["backendResources"] == [
        {"group": "inference.networking.k8s.io", "kind": "InferencePool", "version": "v1"}
    ]
    assert manager["hooks"]["xdsTranslator"]["post"] == ["Translation", "Cluster", "Route"]
    assert manager["service"]["fqdn"] == {
        "hostname": "ai-gateway-controller.envoy-ai-gateway-system.svc.cluster.local",
        "port": 1063,
    }
    assert helm_values(answer, "ai-gateway")["controller"]["mutatingWebhook"] == {"certManager": {"enable": True}}
    assert helm_values(answer, "dra-driver") == {
        "gpuResourcesEnabledOverride": True,
        "resources": {"computeDomains": {"enabled": False}},
        "nvidiaDriverRoot": "/opt/nvidia",
    }
    provider = answer.desired["envoy-gateway"]["spec"]["forProvider"]
    assert provider["chart"]["version"] == "v1.8.3"
    assert (provider["wait"], provider["waitTimeout"], provider["maxHistory"]) == (True, "5m0s", 5)
    assert "wait" not in answer.desired["dra-driver"]["spec"]["forProvider"]
    annotation = answer.desired["leader-worker-set"]["metadata"]["annotations"]["crossplane.io/external-name"]
    assert annotation == "mp-lws"


def test_definitions_carry_no_status(call: Call) -> None:
    _, _, answer = grow(call, stack(), report=report)
    for key in GAIE:
        crd = manifest(answer, key)
        assert crd["kind"] == "CustomResourceDefinition"
        assert crd["metadata"]["name"] == key.removeprefix("gaie-crd-")
        assert "status" not in crd
        assert "creationTimestamp" not in crd["metadata"]
        assert "Established" in answer.desired[key]["spec"]["readiness"]["celQuery"]


def test_only_tenants_attach_routes(call: Call) -> None:
    listeners = [
        {"name": "http", "port": 80, "protocol": "HTTP"},
        {"name": "https", "port": 443, "protocol": "HTTPS", "tls": {"secretName": "cert"}},
    ]
    _, _, answer = grow(call, stack(gateway={"listeners": listeners, "className": "own"}), report=report)
    spec = manifest(answer, "gateway")["spec"]
    assert spec["gatewayClassName"] == manifest(answer, "gateway-class")["metadata"]["name"] == "own"
    for listener in spec["listeners"]:
        assert listener["allowedRoutes"]["namespaces"] == {
            "from": "Selector",
            "selector": {"matchExpressions": [{"key": "modelplane.ai/tenant", "operator": "Exists"}]},
        }
    assert spec["listeners"][1]["tls"] == {"mode": "Terminate", "certificateRefs": [{"name": "cert"}]}


@pytest.mark.parametrize(
    "platform, service, annotations",
    [
        ("Existing", {}, None),
        ("EKS", {}, {"service.beta.kubernetes.io/aws-load-balancer-type": "nlb"}),
        (
            "EKS",
            {"internal": True, "annotations": {"service.beta.kubernetes.io/aws-load-balancer-type": "external"}},
            {
                "service.beta.kubernetes.io/aws-load-balancer-internal": "true",
                "service.beta.kubernetes.io/aws-load-balancer-type": "external",
            },
        ),
        ("GKE", {"internal": True}, {"networking.gke.io/load-balancer-type": "Internal"}),
    ],
)
def test_load_balancer(call: Call, platform: str, service: Any, annotations: Any) -> None:
    _, _, answer = grow(call, stack(platform=platform, gateway={"service": service}), report=report)
    kubernetes = manifest(answer, "gateway-proxy")["spec"]["provider"]["kubernetes"]
    assert kubernetes["envoyService"].get("annotations") == annotations
    assert kubernetes["envoyService"]["name"] == manifest(answer, "gateway-service")["metadata"]["name"]
    assert kubernetes["envoyPDB"] == {"minAvailable": 1}


def test_an_internal_gateway_never_comes_out_public(call: Call) -> None:
    asked = stack(gateway={"service": {"internal": True}})
    _, _, answer = grow(call, asked, report=report)
    assert not {"gateway-proxy", "gateway"} & set(answer.desired)
    assert answer.ready is False
    condition = answer.conditions["GatewayReady"]
    assert (condition.status, condition.reason) == ("False", "InvalidGateway")
    assert "spec.gateway.service.annotations" in condition.message

    xr, observed, _ = grow(call, stack(), report=report)
    held = call({**xr, "spec": asked["spec"]}, observed)
    assert_nothing_lost(held)
    assert held.desired["gateway-proxy"]["spec"] == observed["gateway-proxy"]["spec"]
    assert held.ready is False


def test_the_address_outlives_a_flap(call: Call) -> None:
    xr, observed, _ = grow(call, stack(), report=report)
    observed["gateway"]["status"] = {"conditions": conditions(ready=False)}
    answer = call(xr, observed)
    assert answer.status == {"gateway": {"address": "192.0.2.7", "addressType": "IPAddress"}}
    assert answer.ready is False
    assert answer.conditions["GatewayReady"].reason == "Provisioning"


def secret(data: Mapping[str, str]) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "ca", "namespace": NAMESPACE},
        "data": {k: base64.b64encode(v.encode()).decode() for k, v in data.items()},
    }


def test_trust_is_published(call: Call) -> None:
    xr = stack(gateway={"caSecretRef": {"name": "ca", "key": "ca.pem"}})
    assert call(xr).requirements["gateway-ca"].match_name == "ca"
    assert call(xr).requirements["gateway-ca"].namespace == NAMESPACE
    required = {"gateway-ca": [secret({"ca.pem": f"subject: x\n{PEM}{PEM}"})]}
    xr, observed, answer = grow(call, xr, required, report)
    assert answer.status["gateway"]["caBundle"] == PEM + PEM
    assert answer.ready is True
    gone = call(xr, observed, {"gateway-ca": []})
    assert gone.status["gateway"]["caBundle"] == PEM + PEM
    assert gone.ready is True
    assert "not found" in gone.conditions["GatewayReady"].message
    assert gone.ttl == 15
    dropped = call({**xr, "spec": stack()["spec"]}, observed)
    assert "caBundle" not in dropped.status["gateway"]


@pytest.mark.parametrize(
    "data, words",
    [
        ({}, "does not hold PEM"),
        ({"ca.crt": "hello"}, "does not hold PEM"),
        ({"ca.crt": PEM + "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n"}, "does not hold PEM"),
        ({"ca.crt": PEM + PRIVATE}, "private key"),
        ({"ca.crt": PEM, "tls.key": PRIVATE}, "private key"),
        ({"ca.crt": PEM.replace("TUlJQg==", "TUlJ" * 40000)}, "more than 131072"),
    ],
)
def test_only_certificates_are_published(call: Call, data: Mapping[str, str], words: str) -> None:
    xr = stack(gateway={"caSecretRef": {"name": "ca"}})
    _, _, answer = grow(call, xr, {"gateway-ca": [secret(data)]}, report)
    assert "caBundle" not in answer.status["gateway"]
    assert base64.b64encode(PRIVATE.encode()).decode() not in repr(answer)
    assert "BEGIN PRIVATE" not in repr(answer)
    assert answer.ready is False
    assert answer.conditions["GatewayReady"].status == "False"
    assert words in answer.conditions["GatewayReady"].message


def test_what_cannot_be_applied_is_named(call: Call) -> None:
    xr, observed, _ = grow(call, stack(), report=report)
    observed["ai-gateway"]["status"] = {"conditions": conditions(ready=False, synced=False)}
    answer = call(xr, observed)
    message = answer.conditions["ComponentsReady"].message
    assert message.startswith("Waiting for ai-gateway.")
    assert f"Release {NAMESPACE}/{observed['ai-gateway']['metadata']['name']}" in message
