"""GKECluster: whatever goes missing, nothing is let go of and nothing else changes."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.functions.clusters import Settled, Withheld, claims, drift, losses, restored, settle, withhold
from tests.functions.gke_cluster.fleet import config, gke, pool, system
from tests.harness import Call, assert_nothing_lost

from modelplane.simulate import World
from modelplane.xfn.caller import Caller


@pytest.fixture(scope="module", params=["my-project", ""])
def settled(caller: Caller, request: pytest.FixtureRequest) -> Settled:
    fixed = pool("fixed", nodeCount=2, minNodeCount=2, maxNodeCount=2)
    return settle(World(caller), gke(system("infra"), pool(), fixed, project=request.param), config())


@pytest.fixture(scope="module")
def answers(caller: Caller, settled: Settled) -> Withheld:
    return withhold(caller.call, settled)


def test_nothing_is_lost(answers: Withheld) -> None:
    assert losses(answers) == []


def test_nothing_else_changes(settled: Settled, answers: Withheld) -> None:
    assert drift(settled, answers) == []


def test_readiness_is_not_claimed(answers: Withheld) -> None:
    assert claims(answers, "nodepool-gpu", "nodepool-fixed", "gcp-provider-config") == []


def test_a_restored_composite_keeps_its_names(call: Call, settled: Settled) -> None:
    """A backup gives it another uid, of which the names that are unique in the project are made."""
    assert restored(call, settled) == settled.answer.desired


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(data=st.data())
def test_nothing_is_lost_of_what_remains(call: Call, settled: Settled, data: st.DataObject) -> None:
    """Any part of what exists may be missing, any other may have no status, and the configuration may be unreadable."""
    keys = sorted(settled.observed)
    gone = data.draw(st.sets(st.sampled_from(keys)))
    bare = data.draw(st.sets(st.sampled_from(keys)))
    required = data.draw(st.sampled_from([settled.required, {}, {k: [] for k in settled.required}]))
    observed = {k: ({**v, "status": {}} if k in bare else v) for k, v in settled.observed.items() if k not in gone}
    answer = call(settled.xr, observed, required)
    assert not answer.fatal
    assert_nothing_lost(answer)
