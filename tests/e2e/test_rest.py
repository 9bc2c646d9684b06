"""The fleet at rest: nothing changes, so nothing is said and little is asked."""

from tests.e2e import rest


def test_nothing_happens_at_rest(resting: rest.Rest) -> None:
    resting.wait()
    before, after = resting.before, resting.after
    names = before.versions.keys() | after.versions.keys()
    changed = sorted(name for name in names if before.versions.get(name) != after.versions.get(name))
    said = sorted(text for name, (n, text) in after.events.items() if before.events.get(name, (0, ""))[0] != n)
    minutes = rest.QUIET_SECONDS / 60
    asked = {name: round((n - before.calls.get(name, 0)) / minutes, 1) for name, n in sorted(after.calls.items())}
    print(f"\nrequests per minute at rest: {asked}\nmemory in MiB: {resting.plane.memory()}")
    assert changed == []
    assert said == []
