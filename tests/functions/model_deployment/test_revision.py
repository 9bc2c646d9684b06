"""The revision of a template: golden values, and defaults as the definition publishes them."""

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.functions.model_deployment.fleet import deployment

from modelplane.kube import schema
from modelplane_functions.model_deployment.revision import DEFAULTS, revision

DEFINITION = Path(__file__).parents[3] / "apis/modeldeployments/definition.yaml"

MEMBER = {"template": {"spec": {"containers": [{"name": "engine", "image": "a"}]}}}
GOLDEN = [
    ({"spec": {"engines": [{"name": "main", "members": [MEMBER]}]}}, "", "7ka3jdcoy2"),
    ({"spec": {"engines": [{"name": "main", "members": [MEMBER]}]}}, "artifact", "yyzwtento5"),
    (
        {
            "metadata": {"labels": {"team": "red"}},
            "spec": {
                "serving": {"mode": "PrefillDecode"},
                "engines": [{"name": "main", "copies": 2, "phase": "Prefill", "members": [MEMBER]}],
            },
        },
        "",
        "gktb6zm5hb",
    ),
]


@pytest.mark.parametrize("template, artifact, expected", GOLDEN)
def test_golden(template: dict[str, Any], artifact: str, expected: str) -> None:
    assert revision(template, artifact) == expected


def published() -> dict[str, Any]:
    definition = yaml.safe_load(DEFINITION.read_text())
    found: dict[str, Any] = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


def test_the_table_is_what_the_definition_publishes() -> None:
    spec = published()["properties"]["spec"]["properties"]["template"]["properties"]["spec"]["properties"]
    assert {
        "engines": _defaults(spec["engines"]),
        "mode": spec["serving"]["properties"]["mode"]["default"],
    } == DEFAULTS


def _defaults(node: dict[str, Any]) -> Any:
    if "default" in node:
        return node["default"]
    if node.get("type") == "array":
        inner = _defaults(node["items"])
        return [inner] if inner else None
    found = {name: _defaults(child) for name, child in node.get("properties", {}).items()}
    return {name: value for name, value in found.items() if value not in (None, {}, [])} or None


def test_defaulting_changes_nothing() -> None:
    plain = deployment()
    member = plain["spec"]["template"]["spec"]["engines"][0]["members"][0]
    del member["role"]
    defaulted = schema.apply_defaults(published(), copy.deepcopy(plain))
    assert defaulted != plain
    assert revision(plain["spec"]["template"]) == revision(defaulted["spec"]["template"])


@pytest.mark.parametrize(
    "path, value, changes",
    [
        (("spec", "engines", 0, "copies"), 2, True),
        (("spec", "engines", 0, "members", 0, "template", "spec", "containers", 0, "image"), "b", True),
        (("spec", "engines", 0, "members", 0, "nodeSelector", "devices", 0, "count"), 2, True),
        (("metadata", "labels", "team"), "blue", True),
        (("spec", "serving"), {"mode": "PrefillDecode"}, True),
        (("spec", "serving"), {"mode": "Unified"}, False),
        (("spec", "engines", 0, "http"), {"port": 8000}, False),
        (("spec", "clusterSelector"), {"matchLabels": {"region": "eu"}}, False),
        (("spec", "tolerations"), [{"key": "a"}], False),
        (("spec", "priority"), 5, False),
        (("spec", "topologySpread"), {"labelKey": "region"}, False),
        (("spec", "drainSeconds"), 5, False),
    ],
)
def test_what_a_revision_covers(path: tuple[Any, ...], value: Any, changes: bool) -> None:
    before = deployment()["spec"]["template"]
    after = copy.deepcopy(before)
    node: Any = after
    for step in path[:-1]:
        node = node[step]
    node[path[-1]] = value
    assert (revision(before) != revision(after)) is changes
