"""How Google Cloud resources of one GKECluster look."""

from collections.abc import Mapping, Sequence
from typing import Any

from modelplane import names
from modelplane.clusters.desk import Desk as AnyDesk
from modelplane.composed import FULL
from modelplane.kube.objects import Object
from modelplane.xfn import Request, Response
from modelplane_functions.gke_cluster.inputs import Spec

COMPUTE = "compute.gcp.m.upbound.io/v1beta1"
CONTAINER = "container.gcp.m.upbound.io/v1beta1"
CLOUD = "cloudplatform.gcp.m.upbound.io/v1beta1"

NAME_MAX = 63
CLUSTER_NAME_MAX = 40
ACCOUNT_NAME_MAX = 30


class Desk(AnyDesk[Spec]):
    """One pass over one GKECluster in one project."""

    def __init__(self, req: Request, rsp: Response, spec: Spec, project: str) -> None:
        super().__init__(req, rsp, spec)
        self.project = project

    @property
    def account_key(self) -> str:
        """Name of the Secret with the key of the account that uses the cluster."""
        return names.child(self.spec.name, "sa-key")

    def cloud_name(self, key: str, visible: str, limit: int) -> str:
        """Google's name of a resource: the one it has, or one that nothing else in the project has."""
        spec = self.spec
        return self.external_name(key) or names.name(visible, key, spec.namespace, spec.name, spec.uid, limit=limit)

    def gcp(
        self,
        key: str,
        api_version: str,
        kind: str,
        provider: Mapping[str, Any],
        *,
        labels: Mapping[str, str] | None = None,
        external_name: str = "",
        policies: Sequence[str] = FULL,
        init: Mapping[str, Any] | None = None,
        connection_secret: str = "",
    ) -> Object:
        """Build a Google Cloud resource in the project; a ServiceAccountKey lives where its account does."""
        body = dict(provider)
        if kind != "ServiceAccountKey":
            body["project"] = self.project
        return self.managed(
            key,
            api_version,
            kind,
            body,
            labels=labels,
            external_name=external_name,
            policies=policies,
            init=init,
            connection_secret=connection_secret,
        )
