"""The judge that other tests rely on must itself be able to say no."""

import copy

import pytest
from tests.validate import validate_composed


def remote(manifest, **spec):
    return {
        "apiVersion": "kubernetes.m.crossplane.io/v1alpha1",
        "kind": "Object",
        "metadata": {"name": "o", "namespace": "n"},
        "spec": {
            "forProvider": {"manifest": manifest},
            "providerConfigRef": {"kind": "ClusterProviderConfig", "name": "c"},
            "watch": True,
            **spec,
        },
    }


DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "a", "namespace": "b"},
    "spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "i", "resources": {"limits": {"memory": "1Gi"}}}]},
        },
    },
}
POOL = {
    "apiVersion": "inference.networking.k8s.io/v1",
    "kind": "InferencePool",
    "metadata": {"name": "a", "namespace": "b"},
    "spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "targetPorts": [{"number": 8000}],
        "endpointPickerRef": {"name": "epp", "port": {"number": 9002}},
    },
}
CLAIM = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "a", "namespace": "b"},
    "spec": {"spec": {"devices": {"requests": [{"name": "g", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]}}},
}
RULE = {
    "apiVersion": "ec2.aws.m.upbound.io/v1beta1",
    "kind": "SecurityGroupIngressRule",
    "spec": {"forProvider": {"region": "us-east-1", "ipProtocol": "-1"}},
}
RELEASE = {
    "apiVersion": "helm.m.crossplane.io/v1beta1",
    "kind": "Release",
    "spec": {
        "forProvider": {
            "chart": {"name": "a", "repository": "b", "version": "1"},
            "namespace": "n",
            "values": {"a": 1},
        },
        "providerConfigRef": {"kind": "ProviderConfig", "name": "c"},
    },
}
ENDPOINT = {
    "apiVersion": "modelplane.ai/v1alpha1",
    "kind": "ModelEndpoint",
    "metadata": {"name": "e", "namespace": "n"},
    "spec": {"url": "http://192.0.2.1/n/r/v1"},
}
SERVICE = {"apiVersion": "v1", "kind": "Service", "spec": {"ports": [{"port": 80}]}}

ACCEPTED = [RULE, RELEASE, ENDPOINT, SERVICE, remote(DEPLOYMENT), remote(POOL), remote(CLAIM)]


@pytest.mark.parametrize("resource", ACCEPTED, ids=lambda r: r["kind"])
def test_accepted(resource):
    assert validate_composed(resource) == []


M = ("spec", "forProvider", "manifest")
C = (*M, "spec", "template", "spec", "containers", 0)
REFUSED = [
    (remote(DEPLOYMENT), (*C, "prots"), [], "('prots' was unexpected)"),
    (remote(DEPLOYMENT), (*C, "ports"), [{"containerPort": "80"}], "'80' is not of type 'integer'"),
    (remote(DEPLOYMENT), (*C, "resources", "limits", "memory"), "1Gib", "limits.memory: '1Gib' is not a Kubernetes"),
    (remote(DEPLOYMENT), (*C, "command"), None, "containers[0].command: is null"),
    (remote(DEPLOYMENT), (*M, "spec", "selector", "matchLabels", "x"), "y", "spec.selector: must select the labels"),
    (remote(DEPLOYMENT), (*M, "metadata", "name"), "A", "manifest.metadata.name: must be a lower case DNS name"),
    (remote(DEPLOYMENT), (*M, "metadata", "namespace"), "", "metadata.namespace: is required"),
    (remote(DEPLOYMENT), (*M, "kind"), "Deploymnt", "Kubernetes 1.36 has no apps/v1 Deploymnt"),
    (remote(DEPLOYMENT), ("spec", "watched"), True, "spec.watched: is not a field"),
    (remote(CLAIM), (*M, "apiVersion"), "resource.k8s.io/v1alpha3", "has no resource.k8s.io/v1alpha3"),
    (remote(POOL), (*M, "spec", "targetPorts"), [], "manifest.spec.targetPorts: must have at least 1 items"),
    (remote(POOL), (*M, "spec", "endpointPickerRef"), {"name": "epp"}, "failed rule: self.kind != 'Service'"),
    (remote(POOL), (*M, "apiVersion"), "inference.example.org/v1", "no schema for inference.example.org/v1"),
    (RULE, ("spec", "forProvider"), {"region": "us-east-1"}, "has(self.forProvider.ipProtocol)"),
    (RULE, ("metadata",), {"labels": {"a": "b c"}}, "metadata.labels.a: must be a label value"),
    (RELEASE, ("spec", "forProvider", "chart"), {"name": 1}, "spec.forProvider.chart.name: must be a string"),
    (RELEASE, ("spec", "forProvider", "values", "a"), None, "spec.forProvider.values.a: is null"),
    (ENDPOINT, ("spec", "url"), "ftp://h", "spec.url: url must be"),
    (SERVICE, ("spec", "ports"), [{"prot": 80}], "Kubernetes 1.34"),
]


@pytest.mark.parametrize("resource, path, value, want", REFUSED, ids=[f"{i}-{r[1][-1]}" for i, r in enumerate(REFUSED)])
def test_refused(resource, path, value, want):
    broken = copy.deepcopy(resource)
    at = broken
    for part in path[:-1]:
        at = at[part]
    at[path[-1]] = value
    problems = validate_composed(broken)
    assert any(want in problem for problem in problems), problems


def test_what_is_only_observed_needs_no_spec():
    route = {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "Gateway",
        "metadata": {"name": "a", "namespace": "b"},
    }
    assert validate_composed(remote(route, managementPolicies=["Observe", "Delete"])) == []
    assert validate_composed(remote(route)) == ["spec.forProvider.manifest.spec: is required"]


def test_a_cluster_scoped_manifest_has_no_namespace():
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a", "namespace": "b"}}
    want = ["spec.forProvider.manifest.metadata.namespace: a cluster-scoped object has none"]
    assert validate_composed(remote(space)) == want
