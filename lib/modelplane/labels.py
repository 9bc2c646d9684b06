"""Labels, annotations, namespaces and API groups that more than one function must agree on."""

GROUP = "modelplane.ai"
VERSION = "modelplane.ai/v1alpha1"
INFRASTRUCTURE = "infrastructure.modelplane.ai/v1alpha1"

SYSTEM_NAMESPACE = "modelplane-system"
"""Where cluster-scoped composites compose, and where the Secrets that an InferenceCluster names live."""

DEPLOYMENT = "modelplane.ai/deployment"
DEPLOYMENT_UID = "modelplane.ai/deployment-uid"
CLUSTER = "modelplane.ai/cluster"
REPLICA_INDEX = "modelplane.ai/replica-index"
REVISION = "modelplane.ai/revision"
CACHE = "modelplane.ai/cache"

POOL = "modelplane.ai/pool"
"""Node label that pins pods to a pool, and the same key on the pods."""
REPLICA = "modelplane.ai/replica"
SERVING = "modelplane.ai/serving"
WORKLOAD = "modelplane.ai/workload"
ENGINE = "modelplane.ai/engine"
FRACTIONAL = "modelplane.ai/fractional"
TENANT = "modelplane.ai/tenant"
RESOURCE = "modelplane.ai/resource"
"""Marks a composed object with its composition key, for selectors inside one composite."""

POOL_REMOVED = "modelplane.ai/pool-removed"
"""Taint of a pool that the spec no longer has but replicas still use."""

DRAINING = "modelplane.ai/draining"
"""Annotation on a ModelReplica whose endpoint is being withdrawn."""
DRAIN_SINCE = "modelplane.ai/drain-since"
"""Annotation on a ModelReplica: Unix seconds at which its drain began; drainTimeoutSeconds counts from it."""
REPLACES = "modelplane.ai/replaces"
"""Annotation on a ModelReplica: name and uid, with a slash between, of the one that leaves once this one serves.

Names come back: an index is used again once its replica is gone.
"""
TEARDOWN = "modelplane.ai/teardown"
"""Annotation on an InferenceCluster; `abandon` leaves an unreachable cluster's objects behind."""
WORKLOAD_HASH = "modelplane.ai/workload-hash"
"""Annotation on workload Objects; while it is unchanged the observed pod template is kept verbatim."""

EXTERNAL_NAME = "crossplane.io/external-name"
FOREGROUND = "foregroundDeletion"

GATEWAY_NAME = "inference-gateway"
"""Name of the Gateway on the control plane and on every workload cluster."""
