"""The table of weaknesses names tests that exist, one for each."""

import ast
import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROWS = dict(re.findall(r"^\| (W\d+) \|(.*)$", (HERE / "weaknesses.md").read_text(), re.MULTILINE))


def test_every_weakness_has_a_row():
    assert sorted(ROWS, key=lambda row: int(row[1:])) == [f"W{number}" for number in range(1, 44)]


@pytest.mark.parametrize("row", ROWS)
def test_the_tests_exist(row):
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", ROWS[row])
    assert named
    for path, name in named:
        tree = ast.parse((HERE / path).read_text())
        assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}, f"{path}::{name}"
