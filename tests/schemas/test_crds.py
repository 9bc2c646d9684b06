"""What `make import-schemas` keeps of the definitions of other projects."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tests import validate

from modelplane.kube import rules, schema

SCHEMAS = validate.SCHEMAS
PINS = yaml.safe_load((SCHEMAS / "versions.yaml").read_text())
PINNED = [(project, crd) for project in PINS["projects"] for crd in project["crds"]]
SCRIPT = SCHEMAS / "tools" / "import_schemas.py"


def nodes(value):
    if isinstance(value, dict):
        yield value
        for child in value.values():
            yield from nodes(child)
    elif isinstance(value, list):
        for child in value:
            yield from nodes(child)


@pytest.mark.parametrize("project, crd", PINNED, ids=[crd["file"] for _, crd in PINNED])
def test_every_pin_is_imported_and_says_from_where(project, crd):
    folder = SCHEMAS / "crds" / f"{project['name']}-{project['version']}"
    definition = json.loads((folder / crd["file"]).with_suffix(".json").read_text())
    notes = definition["metadata"]["annotations"]
    assert notes["source.modelplane.ai/project"] == project["name"]
    assert notes["source.modelplane.ai/version"] == project["version"]
    assert notes["source.modelplane.ai/path"] == f"{project['folder']}/{crd['file']}"
    assert len(notes["source.modelplane.ai/sha256"]) == 64
    assert [v["name"] for v in definition["spec"]["versions"]] == [crd["version"]]


def test_nothing_else_is_there():
    files = {p for p in (SCHEMAS / "crds").rglob("*") if p.is_file()}
    assert len(files) == len(PINNED) + 1 + sum("manifest" in crd for _, crd in PINNED)


def test_every_rule_and_pattern_can_be_judged():
    for (_, kind), served in validate.served().items():
        for node in nodes(served["schema"]):
            if isinstance(node.get("pattern"), str):
                assert schema.compile_pattern(node["pattern"]) is not None, (kind, node["pattern"])
            for rule in node.get("x-kubernetes-validations", ()):
                probe = {"x-kubernetes-validations": [rule]}
                skipped = rules.check(probe, {}, {}, path="v").skipped
                assert not [s for s in skipped if "support" in s.why or "parsed" in s.why], (kind, skipped)


def test_manifests_are_definitions_that_kubernetes_accepts():
    names = [crd["manifest"] for _, crd in PINNED if "manifest" in crd]
    assert sorted(names) == ["inferenceobjectives", "inferencepools"]
    for name in names:
        manifest = validate.modelplane_schemas.manifest(name)
        assert validate.validate_composed(manifest) == []
        assert "status" not in manifest
        assert "creationTimestamp" not in manifest["metadata"]
        assert not any(key.startswith("source.modelplane.ai/") for key in manifest["metadata"]["annotations"])
    pool = validate.modelplane_schemas.manifest("inferencepools")
    assert "api-approved.kubernetes.io" in pool["metadata"]["annotations"]
    assert "x-kubernetes-validations" in json.dumps(pool)
    with pytest.raises(KeyError, match="there is no manifest nope"):
        validate.modelplane_schemas.manifest("nope")


DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.example.org", "creationTimestamp": None, "annotations": {"a": "b"}},
    "spec": {
        "group": "example.org",
        "names": {"kind": "Thing", "plural": "things"},
        "scope": "Namespaced",
        "versions": [
            {"name": "v1", "served": True, "storage": False, "schema": {"openAPIV3Schema": {"type": "object"}}},
            {
                "name": "v2",
                "served": True,
                "storage": True,
                "additionalPrinterColumns": [{"name": "A", "type": "string", "jsonPath": ".spec"}],
                "schema": {
                    "openAPIV3Schema": {
                        "description": "Thing.",
                        "type": "object",
                        "properties": {
                            "description": {"type": "string", "description": "A field of that name."},
                            "title": {"type": "string", "default": "description"},
                        },
                        "x-kubernetes-validations": [{"rule": "has(self.title)", "message": "needs a title"}],
                    }
                },
            },
        ],
    },
    "status": {"conditions": []},
}


def run(folder, tmp_path, crd):
    """Run the importer on a copy of its folder whose versions.yaml pins one definition."""
    home = tmp_path / "schemas"
    (home / "tools").mkdir(parents=True, exist_ok=True)
    for name in ("import_schemas.py", "openapi.py"):
        (home / "tools" / name).write_text((SCHEMAS / "tools" / name).read_text())
    pins = {
        "projects": [{"name": "p", "version": "v9", "folder": "p-v9", "source": "https://example.org/p", "crds": [crd]}]
    }
    (home / "versions.yaml").write_text(yaml.safe_dump(pins))
    command = [sys.executable, str(home / "tools" / SCRIPT.name), str(folder)]
    return home / "crds", subprocess.run(command, capture_output=True, text=True, check=False)


def source(tmp_path, definition):
    path = tmp_path / "in" / "p-v9" / "example.org_things.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(yaml.safe_dump(definition))
    return path


def test_import_strips_prose_and_keeps_rules(tmp_path):
    path = source(tmp_path, DEFINITION)
    crd = {"file": path.name, "version": "v2", "manifest": "things"}
    out, done = run(path.parent.parent, tmp_path, crd)
    assert done.returncode == 0, done.stderr
    files = {p.relative_to(out).as_posix(): p.read_text() for p in out.rglob("*") if p.is_file()}
    assert sorted(files) == ["NOTICE", "manifests/things.json", "p-v9/example.org_things.json"]
    kept = json.loads(files["p-v9/example.org_things.json"])
    (version,) = kept["spec"]["versions"]
    assert "additionalPrinterColumns" not in version
    assert version["schema"]["openAPIV3Schema"] == {
        "type": "object",
        "properties": {"description": {"type": "string"}, "title": {"type": "string", "default": "description"}},
        "x-kubernetes-validations": [{"rule": "has(self.title)"}],
    }
    assert kept["metadata"]["annotations"]["a"] == "b"
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert kept["metadata"]["annotations"]["source.modelplane.ai/sha256"] == digest
    manifest = json.loads(files["manifests/things.json"])
    assert manifest["metadata"] == {"name": "things.example.org", "annotations": {"a": "b"}}
    assert manifest["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["x-kubernetes-validations"] == [
        {"rule": "has(self.title)", "message": "needs a title"}
    ]
    assert "status" not in manifest
    _, again = run(path.parent.parent, tmp_path, crd)
    assert again.returncode == 0
    assert files == {p.relative_to(out).as_posix(): p.read_text() for p in out.rglob("*") if p.is_file()}


@pytest.mark.parametrize(
    "crd, want",
    [
        ({"file": "nope.yaml", "version": "v2"}, "p-v9/nope.yaml: No such file"),
        ({"file": "example.org_things.yaml", "version": "v3"}, "version v3 is not served; versions: ['v1', 'v2']"),
    ],
)
def test_a_wrong_pin_changes_nothing(tmp_path, crd, want):
    path = source(tmp_path, DEFINITION)
    out, _ = run(path.parent.parent, tmp_path, {"file": path.name, "version": "v2"})
    before = sorted(Path(out).rglob("*"))
    _, done = run(path.parent.parent, tmp_path, crd)
    assert done.returncode == 1
    assert want in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(Path(out).rglob("*")) == before
