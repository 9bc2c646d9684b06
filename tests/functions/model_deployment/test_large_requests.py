"""Requests grow with the fleet: gRPC's own limit of 4 MiB is not ours."""

from tests.functions.model_deployment.fleet import cluster, deployment, required
from tests.harness import Call

DEFAULT_LIMIT = 4 * 1024 * 1024


def test_more_than_grpc_takes_by_default(call: Call) -> None:
    other = {
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "ModelReplica",
        "metadata": {"namespace": "elsewhere", "annotations": {"note": "x" * 10_000}},
        "spec": {"clusterName": "elsewhere"},
    }
    replicas = [{**other, "metadata": {**other["metadata"], "name": f"r-{at}"}} for at in range(1_000)]
    answer = call(deployment(), {}, required(cluster(), replicas=replicas))
    assert answer.sent > 2 * DEFAULT_LIMIT
    assert answer.received < DEFAULT_LIMIT
    assert [k for k in answer.desired if k.startswith("replica-")] == ["replica-west-0"]
