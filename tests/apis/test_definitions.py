"""The definitions themselves: what Crossplane and an API server ask of them, and what we ask of ourselves."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import celpy
import pytest
from tests.apis.manifests import ROOT, compositions, definitions, schema_of

from modelplane.kube import rules, schema

KINDS = sorted(definitions())
FUNCTIONS = {
    "EKSCluster": "eks-cluster",
    "GKECluster": "gke-cluster",
    "InferenceClass": "inference-class",
    "InferenceCluster": "inference-cluster",
    "InferenceGateway": "inference-gateway",
    "ModelCache": "model-cache",
    "ModelDeployment": "model-deployment",
    "ModelEndpoint": "model-endpoint",
    "ModelReplica": "model-replica",
    "ModelService": "model-service",
    "ServingStack": "serving-stack",
}
INFRASTRUCTURE = {"EKSCluster", "GKECluster", "ServingStack"}
CLUSTER_SCOPED = {"InferenceClass", "InferenceCluster", "InferenceGateway"}
SHORT_NAMES = {
    "EKSCluster": "eks",
    "GKECluster": "gke",
    "InferenceClass": "icl",
    "InferenceCluster": "ic",
    "InferenceGateway": "ig",
    "ModelCache": "mc",
    "ModelDeployment": "md",
    "ModelEndpoint": "me",
    "ModelReplica": "mr",
    "ModelService": "ms",
    "ServingStack": "ss",
}
COLUMNS = {
    "EKSCluster": {"REGION": ".spec.region"},
    "GKECluster": {"PROJECT": ".spec.project", "REGION": ".spec.region"},
    "InferenceClass": {
        "ACCEPTED": ".status.conditions[?(@.type=='Accepted')].status",
        "DEVICES": ".status.devices",
    },
    "InferenceCluster": {
        "SOURCE": ".spec.cluster.source",
        "GATEWAY": ".status.gateway.address",
        "GPUS": ".status.gpus",
        "REPLICAS": ".status.replicas",
    },
    "InferenceGateway": {"ADDRESS": ".status.address"},
    "ModelCache": {"SOURCE": ".spec.source", "READY": ".status.summary.ready"},
    "ModelDeployment": {"REPLICAS": ".status.summary.ready", "UPDATED": ".status.replicas.updated"},
    "ModelEndpoint": {"URL": ".spec.url"},
    "ModelReplica": {"CLUSTER": ".spec.clusterName"},
    "ModelService": {"ADDRESS": ".status.address"},
    "ServingStack": {"GATEWAY": ".status.gateway.address"},
}

# Keywords of a structural schema that an API server keeps and that we use.
KEYWORDS = {
    "additionalProperties",
    "default",
    "description",
    "enum",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "pattern",
    "properties",
    "required",
    "type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-validations",
}


def nodes(tree: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Walk every schema below one, with its path; the object's own metadata is Kubernetes' and left out."""
    yield path, tree
    for name, child in tree.get("properties", {}).items():
        if (path, name) != ("", "metadata"):
            yield from nodes(child, f"{path}.{name}".lstrip("."))
    if "items" in tree:
        yield from nodes(tree["items"], path + "[]")
    if "additionalProperties" in tree:
        yield from nodes(tree["additionalProperties"], path + "{}")


def at(kind: str, path: str) -> dict[str, Any]:
    """Return the schema at a path, such as spec.nodePools[].zones."""
    return dict(nodes(schema_of(kind)))[path]


def crossplane(name: str, version: str) -> dict[str, Any]:
    (file,) = (ROOT / "schemas" / "crds").glob(f"crossplane-*/apiextensions.crossplane.io_{name}.json")
    served = json.loads(file.read_text("utf-8"))["spec"]["versions"]
    (found,) = [v for v in served if v["name"] == version]
    return dict(found["schema"]["openAPIV3Schema"])


def test_there_are_eleven_kinds() -> None:
    assert sorted(FUNCTIONS) == KINDS
    assert sorted(compositions()) == KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_crossplane_takes_definition_and_composition(kind: str) -> None:
    for manifest, name, version in (
        (definitions()[kind], "compositeresourcedefinitions", "v2"),
        (compositions()[kind], "compositions", "v1"),
    ):
        served = crossplane(name, version)
        full = schema.apply_defaults(served, manifest)
        assert schema.validate(served, full) == []
        assert rules.check(served, full).problems == []


@pytest.mark.parametrize("kind", KINDS)
def test_names(kind: str) -> None:
    definition = definitions()[kind]
    spec = definition["spec"]
    assert definition["apiVersion"] == "apiextensions.crossplane.io/v2"
    assert spec["group"] == ("infrastructure.modelplane.ai" if kind in INFRASTRUCTURE else "modelplane.ai")
    assert spec["scope"] == ("Cluster" if kind in CLUSTER_SCOPED else "Namespaced")
    assert definition["metadata"]["name"] == f"{spec['names']['plural']}.{spec['group']}"
    assert (ROOT / "apis" / spec["names"]["plural"] / "definition.yaml").is_file()
    assert spec["names"]["shortNames"] == [SHORT_NAMES[kind]]
    assert spec["names"]["categories"] == ["crossplane", "modelplane"]
    (version,) = spec["versions"]
    assert (version["name"], version["served"], version["referenceable"]) == ("v1alpha1", True, True)
    assert {c["name"]: c["jsonPath"] for c in version["additionalPrinterColumns"]} == COLUMNS[kind]


def test_scale() -> None:
    for kind, definition in definitions().items():
        (version,) = definition["spec"]["versions"]
        expected = {
            "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas.total",
                "labelSelectorPath": ".status.selector",
            }
        }
        assert version.get("subresources") == (expected if kind == "ModelDeployment" else None)


@pytest.mark.parametrize("kind", KINDS)
def test_columns_and_scale_read_fields_that_exist(kind: str) -> None:
    (version,) = definitions()[kind]["spec"]["versions"]
    paths = [c["jsonPath"] for c in version["additionalPrinterColumns"]]
    paths += version.get("subresources", {}).get("scale", {}).values()
    types = {c["jsonPath"]: c["type"] for c in version["additionalPrinterColumns"]}
    for path in paths:
        if path.startswith(".status.conditions["):
            continue
        field = at(kind, path.removeprefix("."))
        assert types.get(path, field["type"]) == field["type"], path


@pytest.mark.parametrize("kind", KINDS)
def test_composition(kind: str) -> None:
    composition, spec = compositions()[kind], definitions()[kind]["spec"]
    assert composition["apiVersion"] == "apiextensions.crossplane.io/v1"
    assert composition["metadata"]["name"] == definitions()[kind]["metadata"]["name"]
    assert composition["spec"]["compositeTypeRef"] == {"apiVersion": f"{spec['group']}/v1alpha1", "kind": kind}
    assert composition["spec"]["mode"] == "Pipeline"
    (step,) = composition["spec"]["pipeline"]
    assert step["step"] == FUNCTIONS[kind]
    assert step["functionRef"] == {"name": f"modelplane-{FUNCTIONS[kind]}"}
    gateway = {
        "requirementName": "gateway",
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "InferenceGateway",
        "name": "default",
    }
    needs = {"requiredResources": [gateway]} if kind in ("ModelService", "ModelEndpoint") else None
    assert step.get("requirements") == needs


@pytest.mark.parametrize("kind", KINDS)
def test_schema_is_structural_and_bounded(kind: str) -> None:
    for path, node in nodes(schema_of(kind)):
        assert set(node) <= KEYWORDS, path
        assert node["type"] in ("object", "array", "string", "integer", "boolean"), path
        if node["type"] == "object":
            assert ("properties" in node) != ("additionalProperties" in node), path
            assert set(node.get("required", ())) <= set(node.get("properties", ())), path
        if node["type"] == "array":
            assert node["maxItems"] > 0, path
            assert node["x-kubernetes-list-type"] in ("atomic", "map", "set"), path
            for key in node.get("x-kubernetes-list-map-keys", ()):
                items = node["items"]
                assert key in items["required"] or "default" in items["properties"][key], path
        if node["type"] == "string":
            assert "enum" in node or node["maxLength"] > 0, path
        if node["type"] == "integer":
            assert "minimum" in node, path
            assert "maximum" in node or path.startswith("status."), path
        if "additionalProperties" in node:
            assert node["maxProperties"] > 0, path


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_is_described(kind: str) -> None:
    for path, node in nodes(schema_of(kind)):
        text = node["description"]
        assert text == text.strip(), path
        assert text[0].isupper() or text.startswith("cert-manager"), path
        assert text.endswith("."), path


@pytest.mark.parametrize("kind", KINDS)
def test_defaults_are_valid(kind: str) -> None:
    for path, node in nodes(schema_of(kind)):
        if "default" in node:
            full = schema.apply_defaults(node, node["default"])
            assert schema.validate_value(node, full, path) == []
            assert rules.check(node, full, path=path).problems == []


@pytest.mark.parametrize("kind", KINDS)
def test_rules_parse_and_say_what_is_accepted(kind: str) -> None:
    environment = celpy.Environment()
    for path, node in nodes(schema_of(kind)):
        for rule in node.get("x-kubernetes-validations", ()):
            assert set(rule) == {"rule", "message"}, path
            environment.compile(rule["rule"])
            assert "invalid" not in rule["message"].lower(), path
            assert not path.startswith("status"), "a status that is refused is lost"


@pytest.mark.parametrize("kind", KINDS)
def test_a_status_is_lenient(kind: str) -> None:
    for path, node in nodes(schema_of(kind)["properties"]["status"], "status"):
        assert not {"pattern", "default", "minItems", "minLength"} & set(node), path


def test_deployment_and_replica_run_the_same_engines() -> None:
    ours = copy.deepcopy(at("ModelDeployment", "spec.template.spec.engines"))
    theirs = copy.deepcopy(at("ModelReplica", "spec.engines"))
    member, placed = (e["items"]["properties"]["members"]["items"] for e in (ours, theirs))
    assert member["properties"].pop("nodeSelector")
    for name in ("nodePoolName", "deviceRequests", "deviceUsage"):
        assert placed["properties"].pop(name)
    assert (member.pop("required"), placed.pop("required")) == (["template"], ["nodePoolName", "template"])
    (needs,) = [r for r in ours["items"]["x-kubernetes-validations"] if "nodeSelector" in r["rule"]]
    ours["items"]["x-kubernetes-validations"].remove(needs)
    assert ours == theirs
    template, replica = at("ModelDeployment", "spec.template.spec"), at("ModelReplica", "spec")
    assert template["x-kubernetes-validations"] == replica["x-kubernetes-validations"]
    for name in ("serving", "priority", "drainSeconds"):
        assert template["properties"][name] == replica["properties"][name]
    deadline = "progressDeadlineSeconds"
    assert at("ModelDeployment", f"spec.strategy.{deadline}") == replica["properties"][deadline]


SHARED = [
    (("InferenceCluster", "spec.cluster.eks.networking"), ("EKSCluster", "spec.networking")),
    (("InferenceCluster", "spec.cluster.eks.endpoint"), ("EKSCluster", "spec.endpoint")),
    (("InferenceCluster", "spec.cluster.eks.credentials"), ("EKSCluster", "spec.credentials")),
    (("InferenceCluster", "spec.cluster.gke.networking"), ("GKECluster", "spec.networking")),
    (("InferenceCluster", "spec.cluster.gke.endpoint"), ("GKECluster", "spec.endpoint")),
    (("InferenceCluster", "spec.cluster.gke.credentials"), ("GKECluster", "spec.credentials")),
    (("InferenceCluster", "spec.cluster.gke.project"), ("GKECluster", "spec.project")),
    (("InferenceCluster", "spec.components"), ("ServingStack", "spec.components")),
    (("InferenceCluster", "spec.gateway"), ("ServingStack", "spec.gateway")),
    (("InferenceCluster", "status.gateway"), ("ServingStack", "status.gateway")),
    (("InferenceCluster", "spec.nodePools[].capacityBlock"), ("EKSCluster", "spec.nodePools[].capacityBlock")),
    (("ModelDeployment", "spec.template.spec.tolerations"), ("ModelCache", "spec.tolerations")),
]


@pytest.mark.parametrize("one, other", SHARED, ids=lambda p: ".".join(p))
def test_what_is_passed_on_has_one_schema(one: tuple[str, str], other: tuple[str, str]) -> None:
    def bare(pair: tuple[str, str]) -> dict[str, Any]:
        tree = copy.deepcopy(at(*pair))
        tree.get("properties", {}).pop("className", None)
        for _, node in nodes(tree):
            node.pop("description", None)
        return tree

    assert bare(one) == bare(other)


def test_a_cluster_publishes_devices_as_the_class_has_them() -> None:
    wanted = copy.deepcopy(at("InferenceClass", "spec.devices[]"))
    published = copy.deepcopy(at("InferenceCluster", "status.gpuPools[].devices[]"))
    assert set(wanted["properties"]) == set(published["properties"])
    strict = {"default", "description", "maximum", "minLength", "minimum", "required", "x-kubernetes-validations"}
    for tree in (wanted, published):
        for _, node in nodes(tree):
            for word in strict & set(node):
                del node[word]
    assert wanted == published


# Facts of the reference page of EKSCluster, which its users rely on: path, keyword, value.
EKS_REFERENCE = [
    ("spec.kubernetesVersion", {"minLength": 1, "maxLength": 16, "default": "1.36"}),
    ("spec.region", {"minLength": 1, "maxLength": 32}),
    ("spec.networking.vpcCidr", {"maxLength": 18, "default": "10.0.0.0/16"}),
    (
        "spec.networking.subnetCidrs",
        {"minItems": 2, "maxItems": 6, "default": ["10.0.0.0/20", "10.0.16.0/20", "10.0.32.0/20"]},
    ),
    ("spec.networking.subnetCidrs[]", {"maxLength": 18}),
    ("spec.nodePools", {"minItems": 1, "maxItems": 8}),
    ("spec.nodePools[].capacityBlock", {"required": ["capacityReservationId"]}),
    (
        "spec.nodePools[].capacityBlock.capacityReservationId",
        {"minLength": 4, "maxLength": 64, "pattern": "^cr-[0-9a-f]+$"},
    ),
    ("spec.nodePools[].diskSizeGb", {"minimum": 10, "maximum": 65536, "default": 100}),
    ("spec.nodePools[].fabric", {"enum": ["None", "EFA"], "default": "None"}),
    ("spec.nodePools[].gpu", {"required": ["acceleratorType"]}),
    ("spec.nodePools[].gpu.acceleratorType", {"minLength": 1, "maxLength": 63}),
    ("spec.nodePools[].instanceType", {"minLength": 1, "maxLength": 63}),
    ("spec.nodePools[].maxNodeCount", {"minimum": 0, "maximum": 1000, "default": 8}),
    ("spec.nodePools[].minNodeCount", {"minimum": 0, "maximum": 1000}),
    ("spec.nodePools[].name", {"minLength": 1, "maxLength": 40}),
    ("spec.nodePools[].nodeCount", {"minimum": 0, "maximum": 1000, "default": 1}),
    ("spec.nodePools[].role", {"enum": ["System", "GPU"]}),
    ("spec.nodePools[].zones", {"minItems": 1, "maxItems": 8}),
    ("spec.nodePools[].zones[]", {"minLength": 1, "maxLength": 63}),
    ("status.cache.storageClassName", {"maxLength": 253}),
    ("status.secrets[]", {"required": ["name", "key", "type"]}),
    ("status.secrets[].key", {"maxLength": 253}),
    ("status.secrets[].name", {"maxLength": 253}),
    ("status.secrets[].type", {"enum": ["Kubeconfig"]}),
]


@pytest.mark.parametrize("path, facts", EKS_REFERENCE, ids=[p for p, _ in EKS_REFERENCE])
def test_eks_cluster_keeps_its_reference(path: str, facts: dict[str, Any]) -> None:
    bounds = {"minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum", "enum", "default", "pattern"}
    node = at("EKSCluster", path)
    assert {k: v for k, v in node.items() if k in (bounds if "required" not in facts else {"required"})} == facts
