"""The definitions as an API server sees them: what must be admitted is, what must not is refused with our message."""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from tests.apis.manifests import ROOT, Forbidden, definitions, forbidden, valid
from tests.e2e import fleet
from tests.e2e.plane.client import RefusedError
from tests.e2e.plane.kubernetes import Cluster
from tests.e2e.plane.plane import ControlPlane

from modelplane.dra import selector

FORBIDDEN = list(forbidden())
SERVERS = {"1.36": (), "1.34": ("--emulated-version=1.34",)}


@pytest.fixture(scope="module", params=sorted(SERVERS))
def bare(applied: fleet.Arrival, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """An API server that has the CRDs which Crossplane made of our definitions, and no controller.

    The fleet comes up meanwhile.
    """
    plane = applied.plane
    number = 3 + sorted(SERVERS).index(request.param)
    cluster = Cluster(f"bare-{request.param}", number, plane.processes, plane.keys, plane.folder)
    server = cluster.start_server(*SERVERS[request.param], "--disable-admission-plugins=ServiceAccount")
    try:
        cluster.wait_ready()
        crds = []
        for definition in definitions().values():
            name = definition["metadata"]["name"]
            crd = plane.control.client.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", name)
            assert crd is not None
            meta = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
            crds.append({**meta, "metadata": {"name": name}, "spec": crd["spec"]})
        cluster.apply_definitions(crds)
        yield cluster
    finally:
        server.stop()
        del plane.processes.by_name[server.name]


def store(cluster: Cluster, manifest: dict[str, Any]) -> None:
    """Create an object, or update the one of that name."""
    meta = manifest["metadata"]
    if meta.get("namespace"):
        cluster.client.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": meta["namespace"]}})
    found = cluster.client.get(manifest["apiVersion"], manifest["kind"], meta["name"], meta.get("namespace", ""))
    if found is None:
        cluster.client.create(manifest, fieldValidation="Strict")
    else:
        version = found["metadata"]["resourceVersion"]
        updated = {**manifest, "metadata": {**meta, "resourceVersion": version}}
        cluster.client.replace(updated, fieldValidation="Strict")


def test_valid_manifests_are_admitted(bare: Cluster) -> None:
    stored = []
    try:
        for name, manifest in valid():
            try:
                store(bare, manifest)
            except RefusedError as error:
                pytest.fail(f"{name}: {manifest['kind']} {manifest['metadata']['name']}: {error}")
            stored.append(manifest)
    finally:
        for manifest in stored:
            bare.client.delete(manifest)


def test_examples_are_admitted(bare: Cluster) -> None:
    refused = []
    stored = []
    for file in sorted(ROOT.glob("examples/*/*.yaml")):
        for manifest in yaml.safe_load_all(file.read_text("utf-8")):
            if manifest and manifest["kind"] in definitions():
                try:
                    store(bare, manifest)
                    stored.append(manifest)
                except RefusedError as error:
                    refused.append(f"{file.name}: {manifest['kind']} {manifest['metadata']['name']}: {error}")
    for manifest in stored:
        bare.client.delete(manifest)
    assert refused == []
    assert len(stored) > 15


@pytest.mark.parametrize("one", FORBIDDEN, ids=[f.case for f in FORBIDDEN])
def test_forbidden_manifest_is_refused(bare: Cluster, one: Forbidden) -> None:
    try:
        if one.before:
            store(bare, one.before)
        with pytest.raises(RefusedError) as refusal:
            store(bare, one.manifest)
    finally:
        bare.client.delete(one.manifest)
    assert refusal.value.status == 422, refusal.value
    assert one.message in refusal.value.message


def test_kubectl_scale_works(bare: Cluster, plane: ControlPlane) -> None:
    manifest = next(m for _, m in valid() if m["kind"] == "ModelDeployment")
    meta = manifest["metadata"]
    store(bare, manifest)
    try:
        arguments = ("scale", "modeldeployment", meta["name"], "-n", meta["namespace"], "--replicas=7")
        done = plane.kubectl(bare, *arguments)
        assert done.returncode == 0, done.stderr
        found = bare.client.get(manifest["apiVersion"], "ModelDeployment", meta["name"], meta["namespace"])
        assert found is not None
        assert found["spec"]["replicas"] == 7
    finally:
        bare.client.delete(manifest)


SELECTORS = {
    'device.driver == "gpu.nvidia.com"': {"1.34", "1.36"},
    'semver("v1.0", true).major() == 1': {"1.34", "1.36"},
    "[3, 1].sort()[0] == 1": {"1.36"},
    "device.allowMultipleAllocations == true": {"1.36"},
    'device.attributes["gpu.nvidia.com"].tags.includes("a")': set(),
    "math.greatest(1, 2) == 2": set(),
    '"ab".reverse() == "ba"': set(),
}
"""Selectors, and the servers that admit them with the features that are on by default."""


@pytest.mark.parametrize("expression", SELECTORS)
def test_selector_is_refused_before_a_server_would(bare: Cluster, expression: str) -> None:
    spec = {"selectors": [{"cel": {"expression": expression}}]}
    manifest = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "selectors"},
        "spec": spec,
    }
    if bare.name.removeprefix("bare-") in SELECTORS[expression]:
        bare.client.create(manifest, dryRun="All")
    else:
        with pytest.raises(RefusedError) as refusal:
            bare.client.create(manifest, dryRun="All")
        assert refusal.value.status == 422, refusal.value
    if SELECTORS[expression] == set(SERVERS):
        selector.compile(expression)
    else:
        with pytest.raises(selector.SelectorError):
            selector.compile(expression)
