"""Bounded time, and budgets that depend on the request alone."""

import sys
import time
from typing import Any

import pytest

from modelplane.dra import selector
from modelplane.dra.device import Device

LIST = "[" + ",".join(map(str, range(60))) + "]"


def nested(depth: int, body: str) -> str:
    for level in range(depth):
        body = f"{LIST}.all(v{level}, {body})"
    return body


HOSTILE = {
    "nested loops": nested(8, "true"),
    "brackets": "(" * 5000,
    "closed brackets": "(" * 5000 + "true" + ")" * 5000,
    "lists": "[" * 249 + "]" * 249,
    "negations": "!" * 10_000,
    "minus": "-" * 10_000 + "1",
    "ternaries": "a?" * 2500 + "b" + ":c" * 2500,
    "backslashes": '"' + "\\" * 10_000,
    "raw backslashes": 'r"' + "\\" * 5000 + '" == r"' + "\\" * 5000,
    "quotes": "'" * 10_001,
    "open triple": '"""' + '\\"' * 4000,
    "sum": "+".join("1" * 5000),
    "selections": "device" + ".a" * 5000,
    "numbers": "[" + ",".join("1" * 5000) + "].size() > 1",
    "digits": "1" * 10_000,
    "exponent": "1e" + "9" * 9000 + " > 1.0",
    "long pattern": f'device.driver.matches("(?i){"[[:alpha:]]" * 900}")',
    "wide pattern": 'device.driver.matches("((a{100}){100}){100}")',
    "too long": "true || " * 2000 + "true",
    "quantity exponent": 'quantity("1e2000000000").add(quantity("1e-9")) == quantity("1")',
    "quantity digits": f'quantity("{"9" * 9000}") == quantity("1")',
    "surrogate": "'\ud800' == 'a'",
    "nul": "'\x00' == 'a' || \x00",
    "doubled text": "cel.bind(a, 'xxxxxxxx', " + "cel.bind(a, a + a, " * 40 + "a == 'x'" + ")" * 41,
    "doubled list": "cel.bind(a, [1,1], " + "cel.bind(a, a + a, " * 40 + "a == a" + ")" * 41,
    "shared lists": "cel.bind(a, [[1]], " + "cel.bind(a, [a, a].map(x, x).filter(x, true), " * 12 + "true" + ")" * 13,
    "replaced text": "'x'" + ".replace('', 'xxxxxxxxxxxxxxxx')" * 20 + " == 'x'",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_are_refused_quickly(judge: Any, name: str) -> None:
    judge.verdict("true")
    limit = sys.getrecursionlimit()
    started = time.perf_counter()
    found, message = judge.verdict(HOSTILE[name])
    assert time.perf_counter() - started < 2
    assert "cannot be" not in message, message
    assert found in ("compile", "unsupported", "toocostly", "error", "true", "false")
    assert sys.getrecursionlimit() == limit


def test_the_worst_loops_fail_on_their_cost_before_they_run(judge: Any) -> None:
    assert judge.verdict(nested(4, "true"))[0] == "toocostly"


@pytest.mark.parametrize(
    "body",
    [
        nested(3, "true"),
        nested(2, f"v0 + v1 < 200 && {LIST}.size() > v0"),
        nested(1, f"{LIST}.map(x, [x, v0]).filter(y, y[0] > y[1]).size() < 60"),
        nested(2, f"{LIST} == {LIST}"),
        nested(2, "device.driver.matches('(a|b)*c')"),
        nested(2, 'quantity("1Ki").add(v0).isInteger()'),
        nested(2, 'device.driver.replace("", "1.0") != string(v0)'),
    ],
)
def test_steps_stop_what_the_cost_lets_through(judge: Any, body: str) -> None:
    found, message = judge.verdict(f"({body}) && {LIST}.size() == 60", selector.Budget(per_evaluation=20_000))
    assert (found, "20000 steps" in message) == ("error", True), (found, message)


def test_a_thousand_terms(judge: Any) -> None:
    assert judge.verdict(" || ".join(["false"] * 999 + ["true"]))[0] == "true"
    assert judge.verdict("&&".join(["true"] * 1000))[0] == "true"
    found, message = judge.verdict("&&".join(["true"] * 1001))
    assert found == "compile"
    assert "more than 1000 terms" in message


TEXTS = [
    'device.driver == "gpu.nvidia.com"',
    'device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("40Gi")) >= 0',
    'device.attributes["gpu.nvidia.com"].productName.matches("H[0-9]+")',
    "device.attributes.all(d, device.attributes[d].size() > 0)",
    'device.attributes["nope"].x == 1',
    nested(2, "v0 >= 0"),
]


def spend(device: Device, texts: list[str], budget: selector.Budget) -> list[object]:
    return [selector.compile(text, budget).evaluate(device, budget) for text in texts]


def test_what_is_remembered_is_charged_alike(judge: Any) -> None:
    selector._verdicts.clear()
    selector._programs.clear()
    cold, warm = selector.Budget(), selector.Budget()
    assert spend(judge.device, TEXTS, cold) == spend(judge.device, TEXTS, warm)
    assert (cold.left, cold.charged) == (warm.left, warm.charged)
    assert (cold.evaluations, warm.evaluations) == (len(TEXTS), 0)


def test_refused_texts_are_charged_alike() -> None:
    lefts = []
    for _ in range(2):
        budget = selector.Budget()
        with pytest.raises(selector.CompileError, match="undefined field"):
            selector.compile('device.nothing == "at all"', budget)
        lefts.append(budget.left)
    assert lefts[0] == lefts[1] < selector.Budget().left


def test_the_same_verdict_for_another_limit_is_not_reused(judge: Any) -> None:
    text = "device.attributes.all(d, device.attributes[d].all(k, k.size() > 0))"
    assert judge.verdict(text, selector.Budget(per_evaluation=50))[0] == "error"
    assert judge.verdict(text)[0] == "true"
    assert judge.verdict(text, selector.Budget(per_evaluation=50))[0] == "error"


@pytest.mark.parametrize("total", range(0, 60_000, 7_000))
def test_the_budget_ends_at_the_same_text(judge: Any, total: int) -> None:
    ends = []
    for cold in (True, False, False):
        if cold:
            selector._verdicts.clear()
            selector._programs.clear()
        budget = selector.Budget(total=total)
        with pytest.raises(selector.BudgetExceeded):
            spend(judge.device, TEXTS, budget)
        ends.append((budget.charged, budget.left))
    assert ends[0] == ends[1] == ends[2]


def test_an_exceeded_budget_stays_exceeded(judge: Any) -> None:
    compiled = selector.compile("true")
    budget = selector.Budget(total=0)
    for _ in range(2):
        with pytest.raises(selector.BudgetExceeded, match="more than 0 steps"):
            compiled.evaluate(judge.device, budget)


def test_order_of_attributes_changes_nothing(judge: Any) -> None:
    text = 'device.attributes["gpu.nvidia.com"].map(k, k)[0] == "architecture"'
    reordered = Device(
        name="gpu",
        driver=judge.device.driver,
        attributes=dict(reversed(judge.device.attributes.items())),
        capacity=judge.device.capacity,
    )
    for device in (judge.device, reordered):
        selector._verdicts.clear()
        selector._environments.clear()
        assert selector.compile(text).evaluate(device, selector.Budget()) == selector.Match()
