"""Verdicts against real Kubernetes: every vector, and the table of rules with one row per rule."""

from typing import Any

import pytest

from modelplane.dra import selector

# What Kubernetes accepts and this package does not, by what the compile error must name.
UNSUPPORTED = {
    "device.allowMultipleAllocations": "allowMultipleAllocations",
    '["a","b"].join("-") == "a-b"': "join()",
    '["a"].join() == "a"': "join()",
    "type(1) == int": "type()",
    '"%s-%d".format(["a", 1]) == "a-1"': "format()",
    'strings.quote("a") == "\\"a\\""': "strings.quote()",
    "[1,2,2].distinct() == [1,2]": "distinct()",
    "[1,2,3].slice(0,2) == [1,2]": "slice()",
    "[3,1,2].sort() == [1,2,3]": "sort()",
    "[[1],[2]].flatten() == [1,2]": "flatten()",
    "lists.range(3) == [0,1,2]": "lists.range()",
    'device.attributes["gpu.nvidia.com"].type.includes("gpu")': "includes()",
    'cidr("10.0.0.0/8").containsIP("10.1.1.1")': "containsIP()",
    'ip("10.0.0.1").family() == 4': "family()",
    'isIP("::1")': "isIP()",
    'isURL("https://a.b")': "isURL()",
    'format.named("uuid").hasValue()': "format.named()",
    'duration("1h") > duration("1m")': "duration()",
    'duration("x") > duration("1s")': "duration()",
    'timestamp("2024-01-01T00:00:00Z") < timestamp("2025-01-01T00:00:00Z")': "timestamp()",
    'timestamp("x") < timestamp("2025-01-01T00:00:00Z")': "timestamp()",
}


def test_vectors(judge: Any) -> None:
    exact, endless, wrong = 0, 0, []
    for case in judge.cases:
        found, message = judge.verdict(case["expr"])
        if "steps that one evaluation may take" in message:
            # Loops over constants that Kubernetes lets run for a good part of a second.
            endless += 1
            found, message = judge.verdict(case["expr"], selector.Budget(10**8, 10**9))
        if case["expr"] in UNSUPPORTED:
            if found != "unsupported" or UNSUPPORTED[case["expr"]] not in message:
                wrong.append((case["expr"], case["want"], found, message))
        elif found == case["want"]:
            exact += 1
        else:
            wrong.append((case["expr"][:200], case["want"], found, message))
    assert not wrong
    assert len(judge.cases) == 351
    assert exact + len(UNSUPPORTED) == 351
    assert endless == 3


def test_generated_vectors(judge: Any) -> None:
    wrong = []
    for case in judge.generated:
        found, message = judge.verdict(case["expr"])
        cost = selector.compile(case["expr"]).worst_cost if "cost" in case and found == case["want"] else None
        if (found, cost) != (case["want"], case.get("cost")):
            wrong.append((case, found, cost, message))
    assert not wrong


A = 'device.attributes["gpu.nvidia.com"]'
C = 'device.capacity["gpu.nvidia.com"]'

TABLE = {
    "true": f"""
        device.driver == "gpu.nvidia.com"
        device.attributes["nope"].size() == 0
        has(device.attributes.nope)
        "ecc" in A
        A.missing == 1 || device.driver == "gpu.nvidia.com"
        A.ecc
        C.memory.compareTo(quantity("40Gi")) >= 0
        C.memory == quantity("81559Mi")
        sign(C.memory) == 1
        C.memory.asInteger() > 4.5
        !(C.memory == quantity("1"))
        quantity("40Gi").add(quantity("1Gi")) == quantity("41Gi")
        isQuantity("Mi")
        isQuantity("m")
        isQuantity("1e400")
        quantity("0.1n") == quantity("1n")
        quantity("8Ei") == quantity("9223372036854775807")
        C.memory in [quantity("81559Mi")]
        A.cudaComputeCapability.compareTo(semver("9.0.0")) >= 0
        A.driverVersion.major() >= 570
        A.driverVersion != "570.86.15"
        semver("v1.0.0", true).major() == 1
        semver("1.0", true) == semver("1.0.0")
        isSemver("1.0.0+01")
        semver("1.0.0+a") == semver("1.0.0+b")
        semver("1.0.0-alpha.1").isLessThan(semver("1.0.0-alpha.beta"))
        semver("1.0.0-9").isLessThan(semver("1.0.0-10"))
        semver("18446744073709551615.0.0").major() == -1
        A.index < 7.5
        A.index == 3.0
        A.index == 3u
        A.index in [1,2,3]
        1 > 0.5
        A.index != "3"
        A.index -1 == 2
        1-1 == 0
        --1 == 1
        -5 / 2 == -2
        -5 % 2 == -1
        A.productName.lowerAscii().contains("h100")
        A.productName.split(" ")[1] == "H100"
        A.productName.matches("^NVIDIA (H100|H200).*")
        device.attributes["resource.kubernetes.io"].pcieRoot == "pci0000:00"
        cel.bind(a, A, a.type == "gpu" && a.index == 3)
        cel.bind(x, A.nope, true)
        A.?missing.orValue("x") == "x"
        A[?"missing"].orValue("x") == "x"
        A.exists(k, k == "ecc")
        A.exists(k, v, k == "ecc" && v == true)
        device.attributes.all(d, device.attributes[d].size() > 0)
        true || 1/0 == 1
        !!true
        {"(" * 249}true{")" * 249}
        [1,2,3,][0] == 1
        sets.contains([1,2,3], [2])
        string(1e21) == "1e+21" && string(100.0) == "100" && string(0.00001) == "1e-05" && string(1.5) == "1.5"
        [true, false].exists_one(x, x)
        [1,2,3].map(x, x > 1, x * 2) == [4, 6]
        {{"a": 1}}.transformMap(k, v, v + 1) == {{"a": 2}}
    """,
    "false": """
        has(device.attributes["nope"].x)
        "nope" in device.attributes
        A.missing == 1 && device.driver == "x"
        has(A.nope) && A.nope == 1
        "nope" in A && A.nope == 1
        C.memory.compareTo(quantity("80Gi")) >= 0
        isQuantity("")
        isQuantity("1K")
        isQuantity("1e")
        isQuantity(" 5")
        isQuantity("٣")
        A.type == A.driverVersion
        isSemver("1.0.0-")
        isSemver("1.0.0-01")
        isSemver("18446744073709551616.0.0")
        A.index == "3"
        has(A.type.foo)
        A.?type.x.hasValue()
    """,
    "compile": f"""
        device.foo == "x"
        device.name == "x"
        devcie.driver == "x"
        device["driver"] == "gpu.nvidia.com"
        has(device.attributes["nope"])
        has(A["type"])
        device.driver
        A
        device
        1
        "true"
        [true]
        dyn(true)
        C.memory >= quantity("40Gi")
        C.memory == "81559Mi"
        C.memory.isGreaterThan("40Gi")
        C.memory.isGreaterThan(40)
        isGreaterThan(C.memory, quantity("40Gi"))
        C.memory.sign() == 1
        quantity(5) == quantity("5")
        A.driverVersion.compareTo("570.86.15") == 0
        semver("1.0.0").isGreaterThan(quantity("1"))
        1 == 1.0
        1 == "1"
        [1,2] == [1.0,2.0]
        A.index + "1" == 4
        A.index > 1 ? true : "x"
        [1,"a"].size() == 2
        {{1:"a","b":2}}.size() == 2
        A.productName.matches("[")
        device.attributes["resource.kubernetes.io/pcieRoot"] == "x"
        A.type.exists(x, x == "gpu")
        device.driver.nomethod()
        nofunc(1)
        device.driver.startsWith(1)
        startsWith(device.driver,"g")
        9223372036854775808 > 0
        int("x") == 1 || true
        device.driver = "x"
        "a" and "b"
        as == 1
        math.greatest(1,2) == 2
        "abc".reverse() == "cba"
        {"(" * 250}true{")" * 250}
        "\\q" == "q"
        1_000 == 1000
        0X1f == 31
        1. < 2.0
        A.index inx
        A.true == 1
        b"\\u0041" == b"A"
    """,
    "error": """
        device.attributes["nope"].type == "gpu"
        A.missing
        A.missing == 1 && device.driver == "gpu.nvidia.com"
        A.nope ? true : true
        A.index
        A.type
        quantity("40GB").isInteger()
        quantity("41Gi") == quantity("40Gi").add(quantity("1Gi"))
        quantity("1.5Gi").asInteger() == 1610612736
        A.driverVersion == "570.86.15"
        A.driverVersion == A.type
        A.productName.isGreaterThan(semver("1.0.0"))
        semver("v1.0.0").major() == 1
        A.index > "a"
        A.index % 0 == 1
        !A.type
        A.ecc && A.index
        A["resource.kubernetes.io/pcieRoot"] == "x"
        A.rank == 7
        1/0 == 1
        9223372036854775807 + 1 > 0
        [1,2][5] == 1
        cel.bind(x, A.nope, x == 1 || x == 2)
    """,
    "toocostly": """
        C.memory != quantity("1")
        semver("9.0.0") != semver("9.0.1")
        [1].all(a, device.attributes.all(d, A.all(k, device.attributes.all(e, A.all(j, true)))))
    """,
    "unsupported": """
        [1].exists(x, type(x) == int)
        duration("1h") == duration("60m")
        [?optional.of(1)] == [1]
        {?"a": optional.of(1)} == {}
        .device.driver == "x"
        Device{}.driver == "x"
    """,
}
ROWS = [(line.strip(), want) for want, lines in TABLE.items() for line in lines.strip().splitlines()]


@pytest.mark.parametrize("text, want", ROWS)
def test_rules(judge: Any, text: str, want: str) -> None:
    expanded = expand(text)
    assert judge.verdict(expanded)[0] == want, expanded


def expand(text: str) -> str:
    """A and C stand for the driver's attributes and capacity."""
    pieces: list[str] = []
    for index, mark in enumerate(text):
        before = text[index - 1] if index else " "
        after = text[index + 1] if index + 1 < len(text) else " "
        alone = not (before.isalnum() or before in "\"'_") and not (after.isalnum() or after in "\"'_:")
        pieces.append({"A": A, "C": C}[mark] if mark in "AC" and alone else mark)
    return "".join(pieces)


@pytest.mark.parametrize(
    "text, message, line, column, caret",
    [
        ('device.foo == "x"', "undefined field 'foo'; a device has attributes, capacity, driver", 1, 8, " " * 7 + "^"),
        ("true &&\n  nofunc(1)", "undeclared reference to 'nofunc'", 2, 3, "  nofunc(1)\n  ^"),
        ("true &&", "the expression ends too early", 1, 8, "       ^"),
        ('device.driver == "x', "a string is not closed on its line", 1, 18, "^"),
        ("1 == 'a'", "no overload of == for int == string", 1, 1, "^"),
        ("", "the expression is empty", 1, 1, "^"),
    ],
)
def test_messages_point_at_the_place(text: str, message: str, line: int, column: int, caret: str) -> None:
    with pytest.raises(selector.CompileError) as caught:
        selector.compile(text)
    error = caught.value
    assert (message in error.message, error.line, error.column) == (True, line, column), error
    assert error.caret.endswith(caret)
    assert str(error).startswith(f"{error.message} (line {line}, column {column})")
