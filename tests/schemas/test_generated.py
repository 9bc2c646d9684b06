"""What `make generate` writes: models, and the schemas that our XRs are judged by."""

import importlib
import json
import shutil
import subprocess
import sys

import pytest
import yaml
from pydantic import BaseModel, ValidationError
from tests import validate

import modelplane_schemas
from modelplane.kube import rules, schema

ROOT = validate.SCHEMAS.parent
DEFINITIONS = sorted((ROOT / "apis").glob("*/definition.yaml"))
MODULES = sorted(
    ".".join(path.relative_to(validate.SCHEMAS).with_suffix("").parts)
    for path in (validate.SCHEMAS / "modelplane_schemas").glob("*/*.py")
    if path.stem != "__init__"
)


def test_our_eleven_kinds():
    kinds = [yaml.safe_load(path.read_text())["spec"]["names"]["kind"] for path in DEFINITIONS]
    assert list(modelplane_schemas.kinds()) == sorted(kinds)
    assert len(kinds) == 11
    with pytest.raises(KeyError, match="Deployment is not one of EKSCluster"):
        modelplane_schemas.xrd("Deployment")


@pytest.mark.parametrize("kind", modelplane_schemas.kinds())
def test_what_is_served(kind):
    served = modelplane_schemas.xrd(kind)
    assert served["scope"] in ("Cluster", "Namespaced")
    assert served["version"] == "v1alpha1"
    assert '"description":"' not in json.dumps(served["schema"], separators=(",", ":"))
    spec = served["schema"]["properties"]["spec"]["properties"]
    assert "compositionRef" in spec["crossplane"]["properties"]
    assert "conditions" in served["schema"]["properties"]["status"]["properties"]
    assert served["schema"]["properties"]["metadata"]["properties"]["name"]["maxLength"] <= 63


def defaults(node, path):
    for name, child in (node.get("properties") or {}).items():
        if "default" in child:
            yield f"{path}.{name}", child
        yield from defaults(child, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(node.get(key), dict):
            yield from defaults(node[key], f"{path}[]")


@pytest.mark.parametrize("kind", modelplane_schemas.kinds())
def test_our_defaults_are_valid(kind):
    for path, child in defaults(modelplane_schemas.xrd(kind)["schema"], kind):
        value = schema.apply_defaults(child, child["default"])
        assert schema.validate_value(child, value, path) == []
        verdict = rules.check(child, value, path=path)
        assert verdict == ([], [])


@pytest.mark.parametrize("path", sorted((ROOT / "apis").glob("*/*.yaml")), ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_our_definitions_and_compositions_are_accepted(path):
    assert validate.validate_composed(yaml.safe_load(path.read_text())) == []


@pytest.mark.parametrize("name", MODULES)
def test_every_model_stands_for_its_kind(name):
    module = importlib.import_module(name)
    (whole,) = [
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, BaseModel)
        and value.__name__.lower() == name.rpartition(".")[2]
    ]
    fields = whole.model_fields
    (api_version,) = fields["apiVersion"].annotation.__args__
    assert (api_version, whole.__name__) in validate.served()
    with pytest.raises(ValidationError):
        whole.model_validate({"apiVersion": api_version, "kind": whole.__name__, "metadata": {"nmae": "a"}})


def test_a_model_builds_what_its_schema_accepts():
    module = importlib.import_module("modelplane_schemas.protection_crossplane_io.clusterusage")
    value = {
        "apiVersion": "protection.crossplane.io/v1beta1",
        "kind": "ClusterUsage",
        "spec": {"of": {"apiVersion": "v1", "kind": "A", "resourceRef": {"name": "a"}}, "reason": "in use"},
    }
    built = module.ClusterUsage.model_validate(value).model_dump(mode="json", by_alias=True, exclude_unset=True)
    assert built == value
    assert validate.validate_composed(built) == []


@pytest.fixture
def copy(tmp_path):
    """A copy of what the generator reads and writes, with one XRD and one imported kind."""
    (tmp_path / "apis").mkdir()
    shutil.copytree(ROOT / "apis" / "modelservices", tmp_path / "apis" / "modelservices")
    home = tmp_path / "schemas"
    shutil.copytree(validate.SCHEMAS / "tools", home / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(validate.SCHEMAS / "crds", home / "crds")
    pins = yaml.safe_load((validate.SCHEMAS / "versions.yaml").read_text())
    pins["projects"] = [p for p in pins["projects"] if p["name"] == "gateway-api-inference-extension"]
    (home / "versions.yaml").write_text(yaml.safe_dump(pins))
    return home


def generate(home, *arguments):
    command = [sys.executable, str(home / "tools" / "generate.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def contents(folder):
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_generating_twice_gives_the_same_bytes_and_check_sees_a_change(copy):
    out = copy / "modelplane_schemas"
    assert generate(copy).returncode == 0
    first = contents(out)
    (out / "stray.py").write_text("")
    (out / "openapi" / "modelservice.json").write_text("{}")
    (out / "py.typed").unlink()
    changed = generate(copy, "--check")
    assert changed.returncode == 1
    for name in ("stray.py", "openapi/modelservice.json", "py.typed"):
        assert f"schemas/modelplane_schemas/{name} is not what `make generate` writes" in changed.stderr
    assert generate(copy).returncode == 0
    assert contents(out) == first
    assert generate(copy, "--check").returncode == 0
    assert first[next(iter(k for k in first if k.name == "modelservice.py"))].startswith(
        b"# Generated by `make generate`"
    )
