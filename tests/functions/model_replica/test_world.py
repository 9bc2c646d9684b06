"""A replica on a simulated control plane: clusters, providers and time."""

from pathlib import Path

import pytest
import yaml

from modelplane import catalog
from modelplane.simulate import World
from modelplane.xfn.caller import Caller, in_process
from modelplane.xfn.runner import Runner

EXAMPLES = Path(__file__).parents[3] / "examples"
NAME = ("ModelReplica", "qwen-8b-by-hand", "ml-team")


@pytest.fixture
def fleet() -> World:
    made: World
    made = World(Caller(in_process(Runner(catalog.loaders("all"), now=lambda: made.clock))))
    for folder in ("inferenceclasses", "inferenceclusters"):
        for file in sorted((EXAMPLES / folder).glob("*.yaml")):
            for found in yaml.safe_load_all(file.read_text()):
                if found["metadata"]["name"] in ("nvidia-h100-8x", "on-prem"):
                    made.apply(found)
    made.settle()
    made.apply(EXAMPLES / "modelreplicas")
    made.settle()
    return made


def _status(world: World) -> dict:
    found = world.get(*NAME)
    assert found is not None
    status: dict = found["status"]
    return {
        **{k: status.get(k) for k in ("serving", "served", "blocked")},
        **{c["type"]: (c["status"], c["reason"]) for c in status["conditions"]},
    }


def test_becomes_ready(fleet: World) -> None:
    found = _status(fleet)
    assert found["Ready"][0] == "True"
    assert (found["serving"], found["served"], found["blocked"]) == (True, True, None)
    assert len(fleet.composed(*NAME)) == 6
    assert not [d for d in fleet.deleted if d.key.kind == "Object"]


def test_a_cluster_that_stops_answering(fleet: World) -> None:
    config = fleet.composed(*NAME)["route"]["spec"]["providerConfigRef"]["name"]
    fleet.providers.unreachable.add(config)
    fleet.settle()
    assert (_status(fleet)["ModelReady"], _status(fleet)["serving"]) == (("Unknown", "ClusterUnreachable"), True)
    fleet.advance(301)
    fleet.reconcile(*NAME)
    assert (_status(fleet)["ModelReady"], _status(fleet)["serving"]) == (("False", "ClusterUnreachable"), False)
    fleet.providers.unreachable.clear()
    fleet.settle()
    assert (_status(fleet)["Ready"][0], _status(fleet)["serving"]) == ("True", True)


def test_a_replica_of_a_vanished_cluster_can_be_deleted(fleet: World) -> None:
    objects = fleet.composed(*NAME)
    config = objects["route"]["spec"]["providerConfigRef"]["name"]
    fleet.store._remove(fleet.key("InferenceCluster", "on-prem"))
    fleet.providers.unreachable.add(config)
    fleet.reconcile(*NAME)
    fleet.reconcile(*NAME)
    assert _status(fleet)["blocked"] == "ClusterGone"
    fleet.delete(*NAME)
    fleet.settle()
    assert fleet.get(*NAME) is None
    assert not fleet.select("Object", "ml-team")
