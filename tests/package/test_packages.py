"""The image that function packages embed: what `make packages RUNTIME=` makes of a builder's archive."""

import importlib.util
import io
import json
import subprocess
import sys
import tarfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "package" / "packages.py"


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("packages", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


packages = load()


def archive(path: Path, members: dict[str, Any], links: dict[str, str] | None = None) -> Path:
    with tarfile.open(path, "w") as tar:
        for name, content in members.items():
            data = content if isinstance(content, bytes) else json.dumps(content).encode()
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
        for name, target in (links or {}).items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            tar.addfile(entry)
    return path


def image(**config: Any) -> dict[str, Any]:
    return {
        "blobs/sha256/aa": {"architecture": "amd64", "rootfs": {"diff_ids": ["x", "y"]}, "config": config},
        "blobs/sha256/bb": b"layer",
        "manifest.json": [{"Config": "blobs/sha256/aa", "RepoTags": ["f:1"], "Layers": ["blobs/sha256/bb", "cc.tar"]}],
        "index.json": {"manifests": []},
    }


def test_an_image_is_set_to_serve_one_function(tmp_path: Path) -> None:
    members = image(Env=["PATH=/bin:/usr/bin", "MODELPLANE_FUNCTION=all", "A=b=c"], User="65532:65532")
    source = archive(tmp_path / "in.tar", members, {"cc.tar": "blobs/sha256/bb"})
    packages.runtime(source, "model-cache", tmp_path / "out.tar")
    with tarfile.open(tmp_path / "out.tar") as out:
        found = {m.name: out.extractfile(m).read() for m in out if m.isfile()}  # type: ignore[union-attr]
    (entry,) = json.loads(found["manifest.json"])
    assert entry["Layers"] == ["blobs/sha256/bb", "cc.tar"]
    assert [found[layer] for layer in entry["Layers"]] == [b"layer", b"layer"]
    config = json.loads(found[entry["Config"]])
    assert config["config"]["Env"] == ["PATH=/bin:/usr/bin", "MODELPLANE_FUNCTION=model-cache", "A=b=c"]
    assert config["config"]["User"] == "65532:65532"
    assert config["rootfs"] == {"diff_ids": ["x", "y"]}


@pytest.mark.parametrize(
    "members, message",
    [
        (image(Env=["PATH=/bin"]), "no variable MODELPLANE_FUNCTION"),
        ({"index.json": {}}, "save the image as a docker archive"),
        ({"manifest.json": []}, "holds 0 images"),
    ],
)
def test_another_image_is_refused(tmp_path: Path, members: dict[str, Any], message: str) -> None:
    source = archive(tmp_path / "in.tar", members)
    with pytest.raises(ValueError, match=message):
        packages.runtime(source, "model-cache", tmp_path / "out.tar")


def test_an_image_without_the_cli_is_refused(tmp_path: Path) -> None:
    command = [sys.executable, str(SCRIPT), "--registry", "r.example.org/modelplane", "--runtime", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert "--runtime needs --crossplane" in done.stderr


def test_the_recipe_sets_the_variable_and_the_command_reads_it() -> None:
    recipe = (SCRIPT.parent / "Containerfile").read_text()
    assert f"ENV {packages.VARIABLE}=all" in recipe
    assert 'ENTRYPOINT ["/venv/bin/modelplane", "function"]' in recipe
