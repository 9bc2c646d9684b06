"""Import the CustomResourceDefinitions named in versions.yaml into schemas/crds, without prose.

Usage: import_schemas.py CRDS..., folders that hold one folder per project as versions.yaml names them.
"""

from __future__ import annotations

import copy
import hashlib
import shutil
import sys
from pathlib import Path
from typing import Any

import yaml
from openapi import encode, strip, walk

ROOT = Path(__file__).resolve().parent.parent
SOURCE = "source.modelplane.ai/"
MIT = """\
Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit
persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE."""


class ImportSchemaError(Exception):
    """A definition that versions.yaml names cannot be imported; the message says which and why."""


def main(folders: list[Path]) -> None:
    """Read every pinned definition before the first file is written, then replace schemas/crds as a whole."""
    pins = yaml.safe_load((ROOT / "versions.yaml").read_text())
    files: dict[str, str] = {}
    for project in pins["projects"]:
        for entry in project["crds"]:
            files.update(definition_files(folders, project, entry))
    files["NOTICE"] = notice(pins["projects"])
    out = ROOT / "crds"
    shutil.rmtree(out, ignore_errors=True)
    for name, text in sorted(files.items()):
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    print(f"{len(files)} files, {sum(map(len, files.values())) // 1024} KiB")


def definition_files(folders: list[Path], project: dict[str, Any], entry: dict[str, Any]) -> dict[str, str]:
    """Return the files that one entry of versions.yaml becomes, by path below schemas/crds."""
    path = f"{project['folder']}/{entry['file']}"
    where = next((folder for folder in folders if (folder / path).exists()), folders[0])
    try:
        raw = (where / path).read_bytes()
    except OSError as error:
        raise ImportSchemaError(f"{path}: {error.strerror}; CRDS must name the folder that holds it") from None
    documents = [d for d in yaml.load_all(raw, Loader=_LOADER) if d]
    if len(documents) != 1 or documents[0].get("kind") != "CustomResourceDefinition":
        raise ImportSchemaError(f"{path}: want exactly one CustomResourceDefinition")
    whole = only(documents[0], entry["version"], path)
    compact = copy.deepcopy(whole)
    compact["spec"]["versions"][0].pop("additionalPrinterColumns", None)
    strip(compact["spec"]["versions"][0]["schema"]["openAPIV3Schema"], messages=False)
    compact["metadata"]["annotations"] = {
        **(whole["metadata"].get("annotations") or {}),
        SOURCE + "project": project["name"],
        SOURCE + "version": project["version"],
        SOURCE + "path": path,
        SOURCE + "sha256": hashlib.sha256(raw).hexdigest(),
    }
    stem = entry["file"].removesuffix(".yaml")
    files = {f"{project['name']}-{project['version']}/{stem}.json": encode(compact)}
    if "manifest" in entry:
        strip(whole["spec"]["versions"][0]["schema"]["openAPIV3Schema"], messages=True)
        files[f"manifests/{entry['manifest']}.json"] = encode(whole)
    return files


def only(definition: dict[str, Any], version: str, path: str) -> dict[str, Any]:
    """Keep of a definition what an API server needs to serve one version of it."""
    spec, meta = definition["spec"], definition["metadata"]
    versions = [v for v in spec["versions"] if v["name"] == version and v["served"]]
    if not versions:
        raise ImportSchemaError(
            f"{path}: version {version} is not served; versions: {[v['name'] for v in spec['versions']]}"
        )
    kept = {"name": meta["name"], "annotations": meta.get("annotations"), "labels": meta.get("labels")}
    schema = versions[0]["schema"]["openAPIV3Schema"]
    walk(schema, _check)
    return {
        "apiVersion": definition["apiVersion"],
        "kind": definition["kind"],
        "metadata": {key: value for key, value in kept.items() if value},
        "spec": {
            "group": spec["group"],
            "names": spec["names"],
            "scope": spec["scope"],
            "versions": [{**versions[0], "storage": True}],
        },
    }


def _check(node: dict[str, Any]) -> None:
    if "$ref" in node:
        raise ImportSchemaError("a structural schema holds no $ref")


def notice(projects: list[dict[str, Any]]) -> str:
    """Name the projects whose definitions are kept here."""
    lines = [
        "CustomResourceDefinitions of the projects below, used under the Apache License 2.0 or the one named.",
        "Changed: descriptions, rule messages, printer columns and versions that are not used were removed.",
        "",
    ]
    lines += [f"{p['name']} {p['version']}  {p['source']}{_licensed(p)}" for p in projects]
    for project in (p for p in projects if "license" in p):
        lines += ["", f"{project['name']}, {project['license']} License:", "", project["copyright"], "", MIT]
    return "\n".join(lines) + "\n"


def _licensed(project: dict[str, Any]) -> str:
    if "license" not in project:
        return ""
    if project["license"] != "MIT":
        raise ImportSchemaError(f"{project['name']}: license {project['license']} has no text here; known: MIT")
    return f"  ({project['license']})"


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: import_schemas.py CRDS...")
    try:
        main([Path(folder) for folder in sys.argv[1:]])
    except ImportSchemaError as problem:
        sys.exit(f"import-schemas: {problem}")
