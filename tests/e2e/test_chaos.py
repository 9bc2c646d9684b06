"""Kill and stop programs in the middle of rollouts: nothing is lost, and the end is as planned."""

import os
import random
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from tests.e2e import chaos, fleet, planned, traffic
from tests.e2e.extent import LONG, ROUNDS
from tests.e2e.plane.client import is_true
from tests.e2e.plane.plane import ControlPlane
from tests.e2e.plane.waiting import wait
from tests.e2e.test_lifecycle import images, roll
from tests.e2e.test_serving import address

MODEL = "llama-70b"
SMALL = "qwen-8b"
WANTED = {MODEL: 2, SMALL: 1}
"""How many replicas must take traffic at every moment."""

SEED = int(os.environ.get("E2E_CHAOS_SEED", "1"))
AWAY_SECONDS = {"functions": 40 if LONG else 5, "control-apiserver": 65 if LONG else 5}
PAUSE_SECONDS = 3.0
"""The longest wait between a recovery and the next kill."""

KILLED = ("functions", "crossplane", "provider-kubernetes", "control-apiserver")


@dataclass
class Tally:
    """What the kills of one program cost; `back` and `recovered` are the worst seconds."""

    kills: int = 0
    back: float = 0.0
    recovered: float = 0.0
    requests: int = 0
    errors: int = 0
    lost: int = 0
    low: int = 0
    ended: set[str] = field(default_factory=set)

    def __str__(self) -> str:
        return (
            f"{self.kills} kills, runs again after {self.back:.1f} s, all works after {self.recovered:.1f} s at worst, "
            f"{self.requests} requests, {self.errors} errors, {self.lost} replicas lost, "
            f"{self.low} moments with too few"
            + (f"; ended by itself: {', '.join(sorted(self.ended))}" if self.ended else "")
        )


@dataclass(frozen=True)
class Kill:
    """A program that was killed, when, and after how many seconds it was back and all worked."""

    name: str
    at: float
    back: float
    recovered: float


@pytest.fixture(scope="module")
def canary(served: ControlPlane) -> Iterator[chaos.Canary]:
    with chaos.Canary(served) as found:
        yield found


def strike(plane: ControlPlane, name: str, canary: chaos.Canary, tally: Tally) -> Kill:
    """Kill a program once, and wait until a change that needs it is carried out."""
    started = time.monotonic()
    chaos.kill(plane, name)
    wait(f"{name} runs again", lambda: chaos.is_back(plane, name), 180, plane.processes[name].tail)
    back = time.monotonic() - started
    canary.sing(240, alive=lambda: tally.ended.update(chaos.revive(plane)))
    recovered = time.monotonic() - started
    tally.kills += 1
    tally.back, tally.recovered = max(tally.back, back), max(tally.recovered, recovered)
    return Kill(name, started, back, recovered)


def test_killed_in_rollouts(served: ControlPlane, canary: chaos.Canary) -> None:
    """Programs are killed in random order at random moments, several times in each rollout."""
    moments = random.Random(SEED)
    order = [name for name in KILLED for _ in range(ROUNDS)]
    moments.shuffle(order)
    total = len(order)
    tallies = {name: Tally() for name in KILLED}
    kills: list[Kill] = []
    rollouts = 0
    traffic.first_answer(address(served))
    started = time.monotonic()
    print()
    with chaos.Watch(served, WANTED) as watch, traffic.Load(address(served)) as load:
        while order:
            rollouts += 1
            image = roll(served, f"v0.12.{rollouts}")
            while order and not (images(served) == {image} and fleet.is_settled(served, MODEL, 2)):
                time.sleep(moments.uniform(0.1, PAUSE_SECONDS))
                name = order.pop()
                kill = strike(served, name, canary, tallies[name])
                kills.append(kill)
                print(
                    f"{len(kills)} of {total}, rollout {rollouts}: {name} is back after {kill.back:.1f} s, "
                    f"all works after {kill.recovered:.1f} s; so far {len(load.errors)} errors, {len(watch.lost)} lost",
                    flush=True,
                )

            def rolled(image: str = image) -> bool:
                chaos.revive(served)
                if not LONG:
                    fleet.hasten_drains(served, MODEL)
                return images(served) == {image} and fleet.is_settled(served, MODEL, 2)

            wait(f"rollout {rollouts} ends", rolled, 480, served.why, step=1)
    ends = [kill.at for kill in kills[1:]] + [time.monotonic()]
    for kill, end in zip(kills, ends, strict=True):
        tally = tallies[kill.name]
        answers = [a for a in load.answers if kill.at <= a.at < end]
        tally.requests += len(answers)
        tally.errors += sum(a.status != 200 for a in answers)
        tally.lost += sum(kill.at <= s.at < end for s in watch.lost)
        tally.low += sum(kill.at <= s.at < end for s in watch.low)
    print(
        f"\n{len(kills)} kills in {rollouts} rollouts, {time.monotonic() - started:.0f} s; {len(watch.drained)} drained"
    )
    for name, tally in tallies.items():
        print(f"{name}: {tally}")
        served.timings[f"recovered from a kill of {name}, at worst"] = round(tally.recovered, 1)
    watch.check()
    # The control plane is not in the path of a request.
    assert not load.errors, load.summary()
    planned.at_rest(served)


@pytest.mark.parametrize(
    ("name", "how"),
    [("functions", "gone"), ("functions", "hang"), ("control-apiserver", "gone"), ("control-apiserver", "hang")],
)
def test_away_for_long(served: ControlPlane, canary: chaos.Canary, name: str, how: str) -> None:
    """While a program is away nothing is lost; what was asked in the meantime happens once it is back."""
    if not LONG and (name, how) not in (("functions", "gone"), ("control-apiserver", "hang")):
        pytest.skip("a part of make e2e-chaos")
    process = served.processes[name]
    with chaos.Watch(served, WANTED) as watch, traffic.Load(address(served)) as load:
        if how == "gone":
            process.kill()
        else:
            process.send(signal.SIGSTOP)
        started = time.monotonic()
        if name == "functions":
            canary.ask()
        time.sleep(AWAY_SECONDS[name])
        if how == "gone":
            process.start()
        else:
            process.send(signal.SIGCONT)
        back = time.monotonic()
        if name != "functions":
            wait(f"{name} takes a change", canary.ask, 180, process.tail)
        ended: set[str] = set()
        canary.hear(240, alive=lambda: ended.update(chaos.revive(served)))
        recovered = time.monotonic() - back
        fleet.settled(served, MODEL, 2, 240)
    print(f"\n{name} {how} for {back - started:.0f} s, works {recovered:.1f} s after: {load.summary()}; ended: {ended}")
    served.timings[f"{name} {how} for {AWAY_SECONDS[name]} s: works again after"] = round(recovered, 1)
    watch.check()
    assert not load.errors, load.summary()


def test_function_answers_fatal(served: ControlPlane) -> None:
    """A function that refuses everything changes nothing, and the composite says what it said."""
    with chaos.Watch(served, WANTED) as watch, traffic.Load(address(served)) as load:
        with served.broken_functions():
            for kind, name in (("ModelDeployment", MODEL), ("ModelService", "chat")):
                fleet.look_now(served, kind, name)
                # Before that it may say that the function which was there has ended.
                chaos.said(served, kind, name, "Synced", "False", text="fatal")
                assert is_true(fleet.get(served, kind, name), "Ready")
            for replica in fleet.replicas(served, MODEL):
                fleet.look_now(served, "ModelReplica", replica["metadata"]["name"])
                chaos.said(served, "ModelReplica", replica["metadata"]["name"], "Synced", "False")
        for kind, name in (("ModelDeployment", MODEL), ("ModelService", "chat")):
            chaos.said(served, kind, name, "Synced", "True")
        fleet.settled(served, MODEL, 2)
    watch.check()
    assert not load.errors, load.summary()


def test_ends_as_planned(served: ControlPlane) -> None:
    """Placed anew, what a drain has moved is where a plan from nothing has it, and so is all else."""
    fleet.scale(served, SMALL, 0, hasten=True)
    fleet.scale(served, SMALL, 1)
    planned.check(served)
