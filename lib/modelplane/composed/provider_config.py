"""ProviderConfigs: how provider-kubernetes and provider-helm reach a workload cluster."""

from dataclasses import dataclass

from modelplane.kube.objects import Object

KUBERNETES = "kubernetes.m.crossplane.io/v1alpha1"
HELM = "helm.m.crossplane.io/v1beta1"


@dataclass(frozen=True)
class ProviderConfigRef:
    """`spec.providerConfigRef` of an Object or a Release; `kind` is ProviderConfig or ClusterProviderConfig."""

    name: str
    kind: str = "ClusterProviderConfig"

    def raw(self) -> Object:
        """The reference as it stands in a manifest."""
        return {"kind": self.kind, "name": self.name}


@dataclass(frozen=True)
class SecretKey:
    """One key of a Secret."""

    namespace: str
    name: str
    key: str

    def raw(self) -> Object:
        """The reference as it stands in a manifest."""
        return {"namespace": self.namespace, "name": self.name, "key": self.key}


def kubernetes_config(
    kind: str, name: str, namespace: str, kubeconfig: SecretKey, identity: tuple[str, SecretKey] | None = None
) -> Object:
    """Build a ProviderConfig (namespaced) or ClusterProviderConfig (empty namespace) of provider-kubernetes.

    `identity` is an identity type, such as GoogleApplicationCredentials, and the Secret key that holds it.
    """
    return _config(KUBERNETES, kind, name, namespace, kubeconfig, identity)


def helm_config(
    kind: str, name: str, namespace: str, kubeconfig: SecretKey, identity: tuple[str, SecretKey] | None = None
) -> Object:
    """Build a ProviderConfig or ClusterProviderConfig of provider-helm."""
    return _config(HELM, kind, name, namespace, kubeconfig, identity)


def _config(
    api_version: str,
    kind: str,
    name: str,
    namespace: str,
    kubeconfig: SecretKey,
    identity: tuple[str, SecretKey] | None,
) -> Object:
    metadata: Object = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    spec: Object = {"credentials": {"source": "Secret", "secretRef": kubeconfig.raw()}}
    if identity is not None:
        type_, secret = identity
        spec["identity"] = {"type": type_, "source": "Secret", "secretRef": secret.raw()}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}
