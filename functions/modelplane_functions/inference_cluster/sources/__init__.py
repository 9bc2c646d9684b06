"""Where clusters come from; a further cloud is one more file here and the XR that makes its clusters."""

from collections.abc import Mapping

from modelplane_functions.inference_cluster.sources.eks import EKS
from modelplane_functions.inference_cluster.sources.existing import EXISTING
from modelplane_functions.inference_cluster.sources.gke import GKE
from modelplane_functions.inference_cluster.sources.source import KUBECONFIG, Child, NodePool, Source, Surroundings

SOURCES: Mapping[str, Source] = {source.name: source for source in (EKS, EXISTING, GKE)}

__all__ = ["KUBECONFIG", "SOURCES", "Child", "NodePool", "Source", "Surroundings"]
