"""`modelplane render` and `plan` against `crossplane composition render`: same functions, Crossplane's own engine.

The fleet is watched at rest meanwhile.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.e2e import tools
from tests.e2e.rest import Rest
from tests.harness import served

from modelplane.kube.objects import Object, mapping, objects

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
FILES = sorted(p for p in EXAMPLES.glob("*/*.yaml") if p.parent.name != "getting-started")
FOLDERS = {
    yaml.safe_load((folder / "definition.yaml").read_text())["spec"]["names"]["kind"]: folder
    for folder in sorted((ROOT / "apis").iterdir())
}


@pytest.fixture(scope="module")
def functions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A functions.yaml for a process of this test's own."""
    folder = tmp_path_factory.mktemp("render")
    with served(folder / "log") as (target, _):
        file = folder / "functions.yaml"
        file.write_text((EXAMPLES / "functions.yaml").read_text().replace("127.0.0.1:9443", target))
        yield file


def documents(text: str) -> list[Object]:
    return [d for d in yaml.safe_load_all(text) if d]


def written(file: Path, found: Iterable[object]) -> Path:
    file.write_text("\n---\n".join(json.dumps(obj) for obj in found))
    return file


def resource_validate(extensions: Path, resources: Path, cache: Path) -> subprocess.CompletedProcess[str]:
    command = [tools.path("crossplane-cli"), "resource", "validate", "--crossplane-image=", f"--cache-dir={cache}"]
    command += ["--error-on-missing-schemas", "--skip-success-results", extensions, resources]
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)


def crossplane(functions: Path, composite: Path, kind: str, *options: str) -> list[Object]:
    command = [tools.path("crossplane-cli"), "composition", "render", f"--crossplane-binary={tools.path('crossplane')}"]
    command += ["--timeout=60s", "--xrd", FOLDERS[kind] / "definition.yaml", *options]
    command += [composite, FOLDERS[kind] / "composition.yaml", functions]
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return documents(done.stdout)


def modelplane(*arguments: str, text: str = "") -> list[Object]:
    command = [str(Path(sys.executable).with_name("modelplane")), *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, input=text)
    return documents(done.stdout)


@dataclass(frozen=True)
class Rendered:
    """A composite of an example, what `modelplane render` prints for it, and what Crossplane does."""

    composite: Object
    ours: list[Object]
    theirs: list[Object]


def render(functions: Path, folder: Path, file: Path) -> list[Rendered]:
    """Render what is in a file in both ways."""
    found = []
    for number, composite in enumerate(d for d in documents(file.read_text()) if d["kind"] in FOLDERS):
        alone = written(folder / f"{file.parent.name}-{file.stem}-{number}.yaml", [composite])
        ours = modelplane("render", "-", text=json.dumps(composite))
        found.append(Rendered(composite, ours, crossplane(functions, alone, composite["kind"])))
    return found


@pytest.fixture(scope="module")
def rendered(functions: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Path, Future[list[Rendered]]]]:
    """What each example renders to."""
    folder = tmp_path_factory.mktemp("examples")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield {file: pool.submit(render, functions, folder, file) for file in FILES}


@pytest.fixture(scope="module", autouse=True)
def meanwhile(resting: Rest) -> None:
    """Nothing here touches the fleet."""


@pytest.mark.parametrize("file", FILES, ids=lambda f: f"{f.parent.name}/{f.name}")
def test_render_prints_what_crossplane_prints(rendered: dict[Path, Future[list[Rendered]]], file: Path) -> None:
    for one in rendered[file].result():
        assert one.ours == one.theirs


PLANNED = [
    (EXAMPLES / "getting-started",),
    (EXAMPLES / "inferenceclusters" / "eks.yaml", EXAMPLES / "inferenceclasses"),
    (EXAMPLES / "inferenceclusters" / "gke.yaml", EXAMPLES / "inferenceclasses"),
]


def test_everything_rendered_validates(rendered: dict[Path, Future[list[Rendered]]], tmp_path: Path) -> None:
    """What examples render to, the fleets they become, and what Objects carry, by `crossplane resource validate`."""
    extensions = tmp_path / "extensions"
    extensions.mkdir()
    for schema in ROOT.glob("schemas/crds/*/*.json"):
        written(extensions / f"{schema.parent.name}-{schema.stem}.yaml", [json.loads(schema.read_text())])
    for kind, folder in FOLDERS.items():
        (extensions / f"{kind}.yaml").write_text((folder / "definition.yaml").read_text())
    found = []
    for one in (one for file in FILES for one in rendered[file].result()):
        # Of the composite itself only the status is printed.
        said, *composed = one.ours
        found += [{**one.composite, "status": said.get("status", {})}, *composed]
    found += [obj for paths in PLANNED for obj in modelplane("plan", "-o", "yaml", *map(str, paths))]
    carried = [dict(mapping(obj, "spec", "forProvider", "manifest")) for obj in found if obj["kind"] == "Object"]
    resources = written(tmp_path / "resources.yaml", [*found, *carried])
    done = resource_validate(extensions, resources, tmp_path / "cache")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert f"Total {len(found) + len(carried)} resources: 0 missing schemas" in done.stdout, done.stdout[-4000:]


def test_a_plan_is_where_crossplane_would_stay(functions: Path, tmp_path: Path) -> None:
    """Rendered again from its own result, every composite composes and says what the plan says."""
    found = modelplane("plan", "-o", "yaml", str(EXAMPLES / "getting-started"))
    composites = [obj for obj in found if obj["kind"] in FOLDERS]
    required = written(tmp_path / "required.yaml", composites)
    for xr in composites:
        children = [obj for obj in found if _owned(obj, xr)]
        options = ["-e", str(required)]
        if children:
            options += ["-o", str(written(tmp_path / "observed.yaml", children))]
        again, *composed = crossplane(functions, written(tmp_path / "xr.yaml", [xr]), xr["kind"], *options)
        label = f"{xr['kind']} {xr['metadata']['name']}"
        assert _names(composed) == _names(children), label
        assert _said(again) == _said(xr), label


def _owned(obj: Object, xr: Object) -> bool:
    return any(ref["uid"] == xr["metadata"]["uid"] for ref in objects(obj, "metadata", "ownerReferences"))


def _names(found: list[Object]) -> set[tuple[str, str]]:
    return {(obj["kind"], obj["metadata"]["name"]) for obj in found}


def _said(xr: Object) -> tuple[Any, Any]:
    fields = ("type", "status", "reason", "message")
    conditions = {tuple(c.get(f) for f in fields) for c in objects(xr, "status", "conditions")}
    return conditions, {k: v for k, v in mapping(xr, "status").items() if k != "conditions"}
