"""EKSCluster: whatever goes missing, nothing is let go of and nothing else changes."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.functions.clusters import Settled, Withheld, changed, claims, drift, losses, restored, settle, withhold
from tests.functions.eks_cluster.fleet import efa, eks, pool, system
from tests.harness import Call, assert_nothing_lost

from modelplane.simulate import World
from modelplane.xfn.caller import Caller


@pytest.fixture(scope="module")
def settled(caller: Caller) -> Settled:
    xr = eks(
        system("infra"),
        efa("p4d.24xlarge", name="efa", capacityBlock={"capacityReservationId": "cr-0"}),
        {k: v for k, v in pool("anywhere").items() if k != "zones"},
    )
    return settle(World(caller), xr)


@pytest.fixture(scope="module")
def answers(caller: Caller, settled: Settled) -> Withheld:
    return withhold(caller.call, settled)


def test_nothing_is_lost(answers: Withheld) -> None:
    assert losses(answers) == []


def test_nothing_else_changes(settled: Settled, answers: Withheld) -> None:
    assert drift(settled, answers) == []


def test_readiness_is_not_claimed(answers: Withheld) -> None:
    assert claims(answers, "nodegroup-efa", "nodegroup-anywhere", "launch-template-", "usage-") == []


def test_a_restored_composite_keeps_its_names(call: Call, settled: Settled) -> None:
    """A backup gives it another uid, of which the names that are unique in the account are made."""
    assert restored(call, settled) == settled.answer.desired


def test_nothing_moves_to_a_zone_that_came_later(call: Call, settled: Settled) -> None:
    """AWS moves neither a control plane nor a node group, so what cannot be read must not be guessed."""
    cidrs = [f"10.0.{index}.0/20" for index in (0, 16, 32, 96)]
    zones = [*settled.answer.status["zones"], "us-west-2d"]
    xr = changed(settled.xr, networking={"subnetCidrs": cidrs, "zones": zones})
    for key in ("cluster", "nodegroup-anywhere"):
        found = settled.observed[key]
        answer = call(xr, settled.observed)
        assert "subnet-3" in answer.desired
        assert answer.desired[key]["spec"] == settled.answer.desired[key]["spec"]
        garbled = {**found, "spec": {**found["spec"], "forProvider": {}}}
        answer = call(xr, {**settled.observed, key: garbled})
        assert answer.desired[key]["spec"]["forProvider"] == {}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(data=st.data())
def test_nothing_is_lost_of_what_remains(call: Call, settled: Settled, data: st.DataObject) -> None:
    """Any part of what exists may be missing, and any other part may have no status."""
    keys = sorted(settled.observed)
    gone = data.draw(st.sets(st.sampled_from(keys)))
    bare = data.draw(st.sets(st.sampled_from(keys)))
    observed = {k: ({**v, "status": {}} if k in bare else v) for k, v in settled.observed.items() if k not in gone}
    answer = call(settled.xr, observed)
    assert not answer.fatal
    assert_nothing_lost(answer)
