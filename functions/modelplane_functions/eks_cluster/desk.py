"""What every room of this function needs at hand: the request, the response, the spec, and how AWS resources look."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from modelplane import names
from modelplane.composed import FULL, ProviderConfigRef
from modelplane.composed.managed import managed
from modelplane.kube.objects import Object, text
from modelplane.labels import CLUSTER, EXTERNAL_NAME, RESOURCE
from modelplane.xfn import Request, Response
from modelplane_functions.eks_cluster.inputs import Spec

EC2 = "ec2.aws.m.upbound.io/v1beta1"
IAM = "iam.aws.m.upbound.io/v1beta1"
EKS = "eks.aws.m.upbound.io/v1beta1"
EFS = "efs.aws.m.upbound.io/v1beta1"

_PARTITIONS = (
    ("cn-", "aws-cn"),
    ("us-gov-", "aws-us-gov"),
    ("us-iso-", "aws-iso"),
    ("us-isob-", "aws-iso-b"),
    ("eu-isoe-", "aws-iso-e"),
    ("us-isof-", "aws-iso-f"),
    ("eusc-", "aws-eusc"),
)


def partition(region: str) -> str:
    """The AWS partition of a region, which every ARN names."""
    return next((name for start, name in _PARTITIONS if region.startswith(start)), "aws")


class Desk:
    """One pass over one EKSCluster."""

    def __init__(self, req: Request, rsp: Response, spec: Spec) -> None:
        self.req = req
        self.rsp = rsp
        self.spec = spec

    def seen(self, key: str) -> bool:
        """Whether a resource exists."""
        return key in self.req.observed

    def ready(self, *keys: str) -> bool:
        """Whether resources exist and are Ready, all of them."""
        return all(self.req.is_ready(key) for key in keys)

    def observed(self, key: str, *path: str) -> str:
        """Read a string of an observed resource, empty where it does not exist."""
        found = self.req.observed.get(key)
        return "" if found is None else text(found.raw, *path)

    def external_name(self, key: str) -> str:
        """AWS' own name or id of an observed resource."""
        found = self.req.observed.get(key)
        return "" if found is None else found.annotations.get(EXTERNAL_NAME, "")

    def name(self, key: str, formula: str) -> str:
        """Name to refer to a resource by: Crossplane keeps the one it has, whatever the formula says now."""
        found = self.req.observed.get(key)
        return found.name if found is not None and found.name else formula

    def unique(self, *parts: str) -> str:
        """A name that no other cluster in the account has, not even one of the same name before or after this."""
        uid = hashlib.sha256(self.spec.uid.encode()).hexdigest()[:8] if self.spec.uid else "00000000"
        return names.child(self.spec.namespace, self.spec.name, *parts, uid)

    @property
    def kubeconfig(self) -> str:
        """Name of the kubeconfig Secret, and of the ProviderConfigs that use it."""
        return names.child(self.spec.name, "kubeconfig")

    @property
    def eks_name(self) -> str:
        """Name of the control plane in AWS, which is its identity there."""
        return self.external_name("cluster") or self.unique("eks")

    @property
    def active(self) -> bool:
        """Whether the control plane answers."""
        return self.observed("cluster", "status", "atProvider", "status") == "ACTIVE"

    def add(
        self,
        key: str,
        build: Object | Callable[[], Object | None],
        *,
        gate: bool = True,
        ready: bool | None = None,
    ) -> bool:
        """Compose a resource once its gate is open, and ever after; ready is what it reports unless said otherwise."""
        maker = build if callable(build) else lambda: build
        return self.rsp.compose_or_hold(key, maker, gate=gate, ready=self.ready(key) if ready is None else ready)

    def aws(
        self,
        key: str,
        api_version: str,
        kind: str,
        provider: Mapping[str, Any],
        *,
        name: str = "",
        labels: Mapping[str, str] | None = None,
        tags: Mapping[str, str] | None = None,
        external_name: str = "",
        policies: Sequence[str] = FULL,
        init: Mapping[str, Any] | None = None,
        connection_secret: str = "",
    ) -> Object:
        """Build an AWS resource, labelled with its key; `tags` gives it the cluster's tag too. IAM has no region."""
        body = dict(provider)
        if api_version != IAM:
            body["region"] = self.spec.region
        if tags is not None:
            body["tags"] = {CLUSTER: self.spec.name, **tags}
        return managed(
            api_version,
            kind,
            body,
            self.spec.config,
            name=name,
            labels={RESOURCE: key, **(labels or {})},
            external_name=external_name,
            policies=policies,
            init=init,
            connection_secret=connection_secret,
        )

    def remote_config(self) -> ProviderConfigRef:
        """How Objects and Releases of this function reach the new cluster."""
        return ProviderConfigRef(name=self.kubeconfig, kind="ProviderConfig")
