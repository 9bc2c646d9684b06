"""How AWS resources of one EKSCluster look."""

from collections.abc import Mapping, Sequence
from typing import Any

from modelplane.clusters.desk import Desk as AnyDesk
from modelplane.composed import FULL
from modelplane.kube.objects import Object
from modelplane.labels import CLUSTER
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


class Desk(AnyDesk[Spec]):
    """One pass over one EKSCluster."""

    @property
    def eks_name(self) -> str:
        """Name of the control plane in AWS, which is its identity there."""
        return self.external_name("cluster") or self.unique("eks")

    @property
    def active(self) -> bool:
        """Whether the control plane answers."""
        return self.text("cluster", "status", "atProvider", "status") == "ACTIVE"

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
        """Build an AWS resource; `tags` gives it the cluster's tag too. IAM has no region."""
        body = dict(provider)
        if api_version != IAM:
            body["region"] = self.spec.region
        if tags is not None:
            body["tags"] = {CLUSTER: self.spec.name, **tags}
        return self.managed(
            key,
            api_version,
            kind,
            body,
            name=name,
            labels=labels,
            external_name=external_name,
            policies=policies,
            init=init,
            connection_secret=connection_secret,
        )
