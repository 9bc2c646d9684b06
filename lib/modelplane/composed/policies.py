"""Management policies of composed provider objects, as sets that crossplane-runtime accepts.

Source: crossplane-runtime pkg/reconciler/managed/policies.go. An object without Delete loses its finalizer before the
provider connects, so its deletion never waits for a cluster that cannot be reached.
"""

FULL = ("*",)
KEEP = ("Observe", "Create", "Update", "LateInitialize")
"""Created and updated, never deleted, such as a namespace that several replicas share."""
ABANDON = ("Observe", "Create", "Update")
"""Left behind when its composite goes."""
OBSERVE = ("Observe",)
OBSERVE_DELETE = ("Observe", "Delete")
NO_LATE_INIT = ("Observe", "Create", "Update", "Delete")
"""Everything but copying the cloud's defaults into the spec, for fields that others change, such as an autoscaler."""
