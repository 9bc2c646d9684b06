"""What a user installs comes up with the rights that it brings along."""

from tests.apis.manifests import definitions
from tests.e2e.plane import packages
from tests.e2e.plane.client import is_true
from tests.e2e.plane.plane import ControlPlane
from tests.e2e.plane.waiting import wait


def test_definitions_are_established(plane: ControlPlane) -> None:
    for definition in definitions().values():
        name = definition["metadata"]["name"]
        found = plane.control.wait_condition(
            "apiextensions.crossplane.io/v2", "CompositeResourceDefinition", name, "Established"
        )
        assert found["spec"]["scope"] == definition["spec"]["scope"]
        plane.control.wait_condition("apiextensions.k8s.io/v1", "CustomResourceDefinition", name, "Established")


def test_every_composed_kind_is_active(plane: ControlPlane) -> None:
    client, version = plane.control.client, "apiextensions.crossplane.io/v1alpha1"
    policy = client.get(version, "ManagedResourceActivationPolicy", "modelplane")
    assert policy is not None
    wanted = policy["spec"]["activate"]

    def inactive() -> dict[str, str]:
        found = {d["metadata"]["name"]: d["spec"]["state"] for d in client.list(version, "ManagedResourceDefinition")}
        return {name: found.get(name, "absent") for name in wanted if found.get(name) != "Active"}

    wait("every composed kind is active", lambda: not inactive(), 60, lambda: str(inactive()), step=0.3)


def test_only_ours_run_as_ours(plane: ControlPlane) -> None:
    packages_found = {p["metadata"]["name"] for p in plane.control.client.list("pkg.crossplane.io/v1", "Function")}
    assert packages_found == {f"modelplane-{name}" for name in packages.catalog.NAMES}
    configuration = plane.control.client.get("pkg.crossplane.io/v1", "Configuration", packages.CONFIGURATION)
    assert is_true(configuration, "Healthy")
