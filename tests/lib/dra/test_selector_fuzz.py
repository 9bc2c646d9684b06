"""Whatever is written, a selector is refused or answers; it never crashes and never answers twice differently."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from modelplane.dra import selector

A = 'device.attributes["gpu.nvidia.com"]'
C = 'device.capacity["gpu.nvidia.com"]'

LEAVES = st.sampled_from(
    [
        *("true", "false", "null", "0", "1", "-1", "2u", "1.5", '""', '"a"', '"gpu"', "b'a'", "x", "y", "[]", "{}"),
        *("9223372036854775807", "device", "device.driver", "device.attributes", "device.capacity", A, C),
        *(f"{A}.{name}" for name in ("type", "index", "ecc", "driverVersion", "nope")),
        *(f"{C}.memory", 'quantity("1Gi")', 'semver("1.2.3")', 'quantity("x")', "optional.none()", "'\\u00e9😀'"),
    ]
)
BINARY = ["==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "&&", "||", "in"]
METHODS = [
    "size",
    "isInteger",
    "asInteger",
    "major",
    "trim",
    "lowerAscii",
    "hasValue",
    "value",
    "sum",
    "max",
    "isSorted",
]
METHODS_1 = ["contains", "matches", "startsWith", "compareTo", "isGreaterThan", "add", "sub", "orValue", "indexOf"]
METHODS_1 += ["split", "find", "findAll", "charAt", "substring", "or"]
FUNCTIONS = [
    "int",
    "uint",
    "double",
    "string",
    "bool",
    "dyn",
    "size",
    "quantity",
    "semver",
    "isQuantity",
    "sign",
    "type",
]
MACROS = ["all", "exists", "exists_one", "filter", "map"]


def compound(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(parts, st.sampled_from(BINARY), parts).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        st.tuples(st.sampled_from("!-"), parts).map("".join),
        st.tuples(parts, parts, parts).map(lambda t: f"({t[0]} ? {t[1]} : {t[2]})"),
        st.tuples(parts, st.sampled_from(METHODS)).map(lambda t: f"{t[0]}.{t[1]}()"),
        st.tuples(parts, st.sampled_from(METHODS_1), parts).map(lambda t: f"{t[0]}.{t[1]}({t[2]})"),
        st.tuples(st.sampled_from(FUNCTIONS), parts).map(lambda t: f"{t[0]}({t[1]})"),
        st.tuples(parts, st.sampled_from(MACROS), st.sampled_from("xy"), parts).map(
            lambda t: f"{t[0]}.{t[1]}({t[2]}, {t[3]})"
        ),
        st.tuples(parts, parts).map(lambda t: f"{t[0]}.exists(x, y, {t[1]})"),
        st.tuples(st.sampled_from("xy"), parts, parts).map(lambda t: f"cel.bind({t[0]}, {t[1]}, {t[2]})"),
        st.tuples(parts, parts).map(lambda t: f"{t[0]}[{t[1]}]"),
        st.tuples(parts, parts).map(lambda t: f"{t[0]}[?{t[1]}]"),
        st.tuples(parts, st.sampled_from([".type", ".?type", ".x"])).map("".join),
        parts.map(lambda part: f"has({part}.x)"),
        st.lists(parts, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
        st.tuples(parts, parts).map(lambda t: f"{{{t[0]}: {t[1]}}}"),
    )


EXPRESSIONS = st.recursive(LEAVES, compound, max_leaves=8)
COMMON = settings(deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])


def judged(judge: Any, text: str) -> None:
    first = judge.verdict(text, selector.Budget(per_evaluation=20_000))
    assert (
        "cannot be" not in first[1].partition("\n")[0] or "cannot be a variable" in first[1] or "iterated" in first[1]
    ), first
    selector._verdicts.clear()
    selector._programs.clear()
    assert judge.verdict(text, selector.Budget(per_evaluation=20_000)) == first


@settings(COMMON, max_examples=400)
@given(EXPRESSIONS)
def test_generated_expressions(judge: Any, text: str) -> None:
    judged(judge, text)


@settings(COMMON, max_examples=200)
@given(EXPRESSIONS, st.data())
def test_damaged_expressions(judge: Any, text: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(text)))
    judged(judge, text[:at] + data.draw(st.text(max_size=3)) + text[at + data.draw(st.integers(0, 3)) :])


@settings(COMMON, max_examples=200)
@given(st.text(alphabet="abdevic.[]{}()\"'\\,?:!-+=<>&|/ \n0159xurRB", max_size=40))
def test_noise(judge: Any, text: str) -> None:
    judged(judge, text)
