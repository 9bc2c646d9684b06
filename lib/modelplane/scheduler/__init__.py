"""Where replicas run: a pure function from what is known of a fleet to what a deployment should have.

`schedule` is the door. The steps of a day are modules of their own: retain, overcommit, drain, rollout, scaledown,
fill. `fleet` reads objects, `match` fits one pod to a node, `packing` and `ledger` count devices, `places` fits a
replica to a cluster, `explain` puts refusals into words.
"""

from modelplane.scheduler.schedule import schedule

__all__ = ["schedule"]
