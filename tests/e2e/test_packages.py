"""What a user installs comes up with the rights that it brings along."""

from tests.apis.manifests import definitions
from tests.e2e.plane import packages
from tests.e2e.plane.client import is_true
from tests.e2e.plane.plane import ControlPlane


def test_definitions_are_established(plane: ControlPlane) -> None:
    for definition in definitions().values():
        name = definition["metadata"]["name"]
        found = plane.control.wait_condition(
            "apiextensions.crossplane.io/v2", "CompositeResourceDefinition", name, "Established"
        )
        assert found["spec"]["scope"] == definition["spec"]["scope"]
        plane.control.wait_condition("apiextensions.k8s.io/v1", "CustomResourceDefinition", name, "Established")


def test_every_composed_kind_is_active(plane: ControlPlane) -> None:
    found = {
        one["metadata"]["name"]: one["spec"]["state"]
        for one in plane.control.client.list("apiextensions.crossplane.io/v1alpha1", "ManagedResourceDefinition")
    }
    policy = plane.control.client.get(
        "apiextensions.crossplane.io/v1alpha1", "ManagedResourceActivationPolicy", "modelplane"
    )
    assert policy is not None
    wanted = policy["spec"]["activate"]
    assert {name: found.get(name) for name in wanted} == dict.fromkeys(wanted, "Active")


def test_only_ours_run_as_ours(plane: ControlPlane) -> None:
    packages_found = {p["metadata"]["name"] for p in plane.control.client.list("pkg.crossplane.io/v1", "Function")}
    assert packages_found == {f"modelplane-{name}" for name in packages.catalog.NAMES}
    configuration = plane.control.client.get("pkg.crossplane.io/v1", "Configuration", packages.CONFIGURATION)
    assert is_true(configuration, "Healthy")
