"""Manifests that must be admitted or refused, judged without an API server."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from tests.apis.manifests import Forbidden, definitions, forbidden, schema_of, valid

from modelplane.kube import rules, schema

FORBIDDEN = list(forbidden())


def judge(tree: dict[str, Any], manifest: dict[str, Any], before: dict[str, Any] | None) -> tuple[list[str], list[str]]:
    """Return what the schema refuses and, if nothing, what the rules refuse; a rule must not go unjudged."""
    full = schema.apply_defaults(tree, manifest)
    shape = [f"{p.path}: {p.message}" for p in schema.validate(tree, full)]
    if shape:
        return shape, []
    verdict = rules.check(tree, full, schema.apply_defaults(tree, before) if before else None)
    assert verdict.skipped == []
    return [], [p.message for p in verdict.problems]


def test_valid_manifests_are_admitted() -> None:
    stored: dict[tuple[str, str, str], dict[str, Any]] = {}
    for _, manifest in valid():
        meta = manifest["metadata"]
        key = (manifest["kind"], meta.get("namespace", ""), meta["name"])
        namespaced = definitions()[manifest["kind"]]["spec"]["scope"] == "Namespaced"
        assert namespaced == bool(meta.get("namespace")), key
        assert judge(schema_of(manifest["kind"]), manifest, stored.get(key)) == ([], []), key
        stored[key] = manifest
    assert {kind for kind, _, _ in stored} == set(definitions())


@pytest.mark.parametrize("one", FORBIDDEN, ids=[f.case for f in FORBIDDEN])
def test_forbidden_manifest_is_refused(one: Forbidden) -> None:
    tree = schema_of(one.manifest["kind"])
    if one.before:
        assert judge(tree, one.before, None) == ([], [])
        assert one.before["metadata"] == one.manifest["metadata"]
    shape, broken = judge(tree, one.manifest, one.before)
    assert shape or any(one.message in message for message in broken), (shape, broken)
    if shape:
        assert one.message not in str([r["message"] for _, r in every_rule(tree)]), "the schema refuses it first"


def test_cases_are_named_once() -> None:
    names = [f.case for f in FORBIDDEN]
    assert sorted(set(names)) == sorted(names)


def every_rule(tree: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    for rule in tree.get("x-kubernetes-validations", ()):
        yield path, rule
    for name, child in tree.get("properties", {}).items():
        yield from every_rule(child, f"{path}.{name}")
    for word in ("items", "additionalProperties"):
        if word in tree:
            yield from every_rule(tree[word], f"{path}.{word}")


def only(tree: dict[str, Any], kept: dict[str, Any]) -> dict[str, Any]:
    """Copy a schema with one rule, by identity, and no other."""
    out = {k: v for k, v in tree.items() if k != "x-kubernetes-validations"}
    if any(rule is kept for rule in tree.get("x-kubernetes-validations", ())):
        out["x-kubernetes-validations"] = [kept]
    if "properties" in out:
        out["properties"] = {k: only(v, kept) for k, v in out["properties"].items()}
    for word in ("items", "additionalProperties"):
        if word in out:
            out[word] = only(out[word], kept)
    return out


@pytest.mark.parametrize("kind", sorted(definitions()))
def test_every_rule_has_a_manifest_that_it_alone_refuses(kind: str) -> None:
    tree = schema_of(kind)
    cases = [
        (schema.apply_defaults(tree, f.manifest), f.before and schema.apply_defaults(tree, f.before))
        for f in FORBIDDEN
        if f.manifest["kind"] == kind
    ]
    cases = [c for c in cases if not schema.validate(tree, c[0])]
    missing = []
    for path, rule in every_rule(tree):
        alone = only(tree, rule)
        if not any(rules.check(alone, new, copy.deepcopy(old)).problems for new, old in cases):
            missing.append(f"{path}: {rule['message']}")
    assert missing == []
