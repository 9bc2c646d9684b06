"""What GKE needs before a critical pod may run outside kube-system.

Source: https://cloud.google.com/kubernetes-engine/docs/how-to/set-up-dra
"""

from modelplane.kube.objects import Object
from modelplane_functions.serving_stack.charts import DRA_NAMESPACE

NAMESPACE = "dra-driver-namespace"
QUOTA = "dra-driver-critical-pods-quota"


def namespace() -> Object:
    """Build the namespace of the NVIDIA DRA driver."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": DRA_NAMESPACE}}


def quota() -> Object:
    """Build the quota without which GKE admits no pod of a critical priority class in a namespace."""
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "allow-critical-pods", "namespace": DRA_NAMESPACE},
        "spec": {
            "hard": {"pods": "1000"},
            "scopeSelector": {
                "matchExpressions": [
                    {
                        "scopeName": "PriorityClass",
                        "operator": "In",
                        "values": ["system-node-critical", "system-cluster-critical"],
                    }
                ]
            },
        },
    }
