"""Fitting one pod to one node, against brute force."""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.lib.scheduler.build import Words, gpu

from modelplane.dra.device import Device
from modelplane.scheduler.match import EFA_DRIVER, Fit, Matcher, Misfit, Verdict, assign_units
from modelplane.scheduler.types import Member, Reason, Request, Shape


def member(*requests: Request) -> Member:
    return Member("Standalone", 1, requests)


def fit(requests: list[Request], *devices: Device, fabric: bool = False) -> Fit | Misfit:
    return Matcher(Words()).fit(member(*requests), Shape(devices), fabric=fabric)


def small(name: str, count: int, rank: int, device_class: str = "gpu.nvidia.com") -> Device:
    return gpu("10Gi", count, name, device_class, attributes={"rank": rank})


def test_count_may_come_from_two_entries_of_one_class() -> None:
    found = fit([Request("a", 3)], small("x", 2, 1), small("y", 2, 2))
    assert isinstance(found, Fit)
    assert found.usage == (2, 1)
    assert [(r.device_class, r.count) for r in found.requests] == [("gpu.nvidia.com", 3)]


def test_count_never_comes_from_two_classes() -> None:
    found = fit([Request("a", 3)], small("x", 2, 1), small("y", 2, 2, "other.example.com"))
    assert isinstance(found, Misfit)
    assert found.reason is Reason.NO_MATCHING_DEVICE
    assert found.message == "request a needs 3, a node has 2"


def test_a_greedy_choice_is_taken_back() -> None:
    # `a` alone would take x, which is all that `b` can use.
    found = fit([Request("a", 1), Request("b", 1, ("rank==1",))], small("x", 1, 1), small("y", 1, 2))
    assert isinstance(found, Fit)
    assert found.usage == (1, 1)
    assert [d.name if d else "" for d in found.matched] == ["y", "x"]


def test_general_devices_stay_free() -> None:
    found = fit([Request("a", 1), Request("b", 1, ("rank==2",))], small("y", 2, 2), small("x", 2, 1))
    assert isinstance(found, Fit)
    assert found.usage == (1, 1)


def test_a_class_with_an_entry_that_errs_is_closed() -> None:
    devices = (small("x", 4, 1), small("y", 4, 2, "other.example.com"))
    both = fit([Request("a", 1, ("error",))], *devices)
    assert isinstance(both, Misfit)
    assert both.reason is Reason.SELECTOR_ERROR
    assert "no such key" in both.message


def test_an_entry_that_errs_closes_its_class_for_the_others() -> None:
    odd = Device("odd", "gpu.nvidia.com", "gpu.nvidia.com", count=1)
    found = Matcher(Partial()).fit(member(Request("a", 1, ("memory>=1Gi",))), Shape((small("x", 4, 1), odd)))
    assert isinstance(found, Misfit)
    assert found.reason is Reason.SELECTOR_ERROR
    elsewhere = replace(odd, device_class="net.example.com")
    assert isinstance(
        Matcher(Partial()).fit(member(Request("a", 1, ("memory>=1Gi",))), Shape((small("x", 4, 1), elsewhere))), Fit
    )


class Partial(Words):
    """Errs on devices without the key, as CEL does."""

    def verdict(self, selector: str, device: Device) -> Verdict:
        return super().verdict(selector, device) if device.capacity else Verdict(match=False, error="no such key")


def test_synthetic_devices_match_and_never_claim() -> None:
    link = Device("link", "example.com", claim="Synthetic", count=1, attributes={"rank": 9})
    found = fit(
        [Request("gpu", 1, ("driver==gpu.nvidia.com",)), Request("net", 1, ("rank==9",))], small("x", 2, 1), link
    )
    assert isinstance(found, Fit)
    assert found.usage == (1,)
    assert [r.name for r in found.requests] == ["gpu"]
    twice = fit([Request("n", 1, ("rank==9",)), Request("m", 1, ("rank==9",))], small("x", 2, 1), link)
    assert isinstance(twice, Misfit)


def test_a_claim_holds_at_most_32_devices() -> None:
    found = fit([Request("a", 20), Request("b", 13)], small("x", 64, 1))
    assert isinstance(found, Misfit)
    assert "33" in found.message


@pytest.mark.parametrize("asked, usage", [(0, (8, 4)), (2, (8, 2))])
def test_a_gang_on_efa_claims_the_interfaces(asked: int, usage: tuple[int, ...]) -> None:
    efa = Device("efa", EFA_DRIVER, "efa.example.com", count=4)
    requests = [Request("gpu", 8, ("driver==gpu.nvidia.com",))]
    if asked:
        requests.append(Request("net", asked, (f"driver=={EFA_DRIVER}",)))
    found = fit(requests, gpu(), efa, fabric=True)
    assert isinstance(found, Fit)
    assert found.usage == usage
    plain = fit(requests, gpu(), efa)
    assert isinstance(plain, Fit)
    assert plain.usage == (8, asked)


def test_nearest_names_the_request_and_the_fact() -> None:
    found = fit([Request("gpu", 1, ("memory>=100Gi",))], gpu("80Gi"))
    assert isinstance(found, Misfit)
    assert found.message == "request gpu: memory is less than 100Gi"


def test_each_pair_is_fitted_once() -> None:
    judge = Words()
    matcher = Matcher(judge)
    shape, pod = Shape((gpu(),)), member(Request("gpu", 1, ("memory>=1Gi",)))
    for _ in range(5):
        matcher.fit(pod, shape)
    assert judge.asked == 1


sizes = st.lists(st.integers(1, 3), min_size=1, max_size=4)


@settings(max_examples=300, deadline=None)
@given(st.data(), sizes, sizes)
def test_assignment_is_exact(data: st.DataObject, wanted: list[int], counts: list[int]) -> None:
    devices = [small(f"d{i}", count, i) for i, count in enumerate(counts)]
    matches = {
        r: [d for d in devices if data.draw(st.booleans(), label=f"request {r} matches {d.name}")]
        for r in range(len(wanted))
    }
    found = assign_units(dict(enumerate(wanted)), matches)
    assert (found is not None) == _possible(wanted, counts, matches)
    if found is not None:
        for r, count in enumerate(wanted):
            assert sum(found[r].values()) == count
            assert set(found[r]) <= {d.name for d in matches[r]}
        for d in devices:
            assert sum(units.get(d.name, 0) for units in found.values()) <= d.count


def _possible(wanted: list[int], counts: list[int], matches: dict[int, list[Device]]) -> bool:
    """Hall's condition over all sets of requests, which is what a feasible assignment comes down to."""
    for chosen in product([False, True], repeat=len(wanted)):
        requests = [r for r, is_in in enumerate(chosen) if is_in]
        reach = {d.name: d.count for r in requests for d in matches[r]}
        if sum(wanted[r] for r in requests) > sum(reach.values()):
            return False
    return True
