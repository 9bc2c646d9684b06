"""Selectors of our own against the verdicts of Kubernetes; what may differ is written down in vectors/README.md."""

import json
import re
from collections import Counter
from typing import Any

import pytest

from modelplane.dra import selector
from modelplane.dra.device import Device

from .conftest import FOLDER

OWN: dict[str, Any] = json.loads((FOLDER / "own.json").read_text())
INVALID = ("malformed", "unset", "lists")


def rows(heading: str, columns: int) -> list[list[str]]:
    """The code spans of a table in the README; cells of plain text are left as they are."""
    section = (FOLDER / "README.md").read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")][1:]
    cells = [[cell.strip() for cell in re.split(r"(?<!\|) \| (?!\|)", line[1:-1])] for line in lines]
    assert all(len(row) == columns for row in cells), cells
    return [[cell[1:-1] if cell.startswith("`") else cell for cell in row] for row in cells]


UNSUPPORTED = rows("Not supported", 3)
DIFFERENT = {text: (want, here) for text, want, here, _ in rows("Otherwise different", 4)}


def read(name: str) -> Device | None:
    found = Device.read({"name": name, "deviceClassName": "any.example.com", **OWN["devices"][name]}, name)
    assert isinstance(found, Device) is (name not in INVALID), found
    return found if isinstance(found, Device) else None


def test_own_vectors(judge: Any) -> None:
    devices = {name: read(name) for name in OWN["devices"]}
    ends: Counter[str] = Counter()
    wrong = []
    for case in OWN["cases"]:
        text, want, device = case["expr"], case["want"], devices[case["device"]]
        found, message = judge.verdict(text, device=device)
        if device is None and found in ("true", "false", "error"):
            found = "error"  # the class is refused, so no selector gets to match
        if "steps that one evaluation may take" in message:
            ends["endless"] += 1
            found, message = judge.verdict(text, selector.Budget(10**8, 10**9), device)
        if found == "unsupported" and any(name in message.splitlines()[0] for _, name, _ in UNSUPPORTED):
            ends["unsupported"] += 1
        elif text in DIFFERENT and (want, found) == DIFFERENT[text]:
            ends["different"] += 1
        elif found != want:
            wrong.append((text, case["device"], want, found, message))
        elif "cost" in case and found != "toocostly" and selector.compile(text).worst_cost != case["cost"]:
            wrong.append((text, "cost", case["cost"], selector.compile(text).worst_cost))
        else:
            ends["exact"] += 1
    assert not wrong
    assert ends == {"exact": 776, "unsupported": 19, "different": 6, "endless": 2}


@pytest.mark.parametrize("name, text", [(name, text) for _, name, text in UNSUPPORTED if text])
def test_unsupported_constructs_are_named(judge: Any, name: str, text: str) -> None:
    found, message = judge.verdict(text)
    assert (found, name in message.splitlines()[0]) == ("unsupported", True), message


def test_differences_are_vectors() -> None:
    assert set(DIFFERENT) <= {case["expr"] for case in OWN["cases"]}
