"""What the deletion of a stack leaves behind: management policies by `spec.teardown`.

On a cluster that is deleted itself, uninstalling first is only risk and time; the gateway's load balancer is the one
thing that would outlive it. On a cluster that cannot be reached, nothing may wait.
"""

from collections.abc import Mapping, Sequence

from modelplane.composed import policies
from modelplane_functions.serving_stack.inputs import ABANDON, ORPHAN, UNINSTALL

Policies = Mapping[str, Sequence[str]]

INSTALLED: Policies = {UNINSTALL: policies.FULL, ORPHAN: policies.ABANDON, ABANDON: policies.ABANDON}
SHARED: Policies = {UNINSTALL: policies.ABANDON, ORPHAN: policies.ABANDON, ABANDON: policies.ABANDON}
"""What others rely on too: deleting a definition deletes every object of its kind, deleting a namespace all in it."""
GATEWAY: Policies = {UNINSTALL: policies.FULL, ORPHAN: policies.FULL, ABANDON: policies.ABANDON}
LOAD_BALANCER: Policies = {
    UNINSTALL: policies.OBSERVE_DELETE,
    ORPHAN: policies.OBSERVE_DELETE,
    ABANDON: policies.OBSERVE,
}


def deletes(chosen: Sequence[str]) -> bool:
    """Whether objects with these policies are deleted on the cluster, so that their deletion needs the cluster."""
    return "*" in chosen or "Delete" in chosen
