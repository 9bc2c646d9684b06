"""Stage and build the packages: one Configuration and one Function package per composition function.

    python package/packages.py --registry REGISTRY/modelplane [--crossplane CLI [--runtime ARCHIVE]]

Writes `_output/packages/<name>/` as the Crossplane CLI takes it, and `<name>.xpkg` beside it with `--crossplane`.
`--runtime` is a docker archive of the image that package/Containerfile makes: each function package embeds it, set to
serve that function, so a registry holds its layers once.
"""

import argparse
import io
import json
import shutil
import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from modelplane import catalog

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "_output" / "packages"
VARIABLE = "MODELPLANE_FUNCTION"
"""Environment variable of the image: which function its entry point serves."""


def fill(text: str, **values: str) -> str:
    """Fill `${NAME}` placeholders; anything else stays."""
    for name, value in values.items():
        text = text.replace("${" + name + "}", value)
    return text


def stage(registry: str, package_version: str) -> list[Path]:
    """Write every package's folder anew and answer them, the functions first."""
    shutil.rmtree(OUTPUT, ignore_errors=True)
    folders = []
    template = (ROOT / "package" / "function.yaml").read_text()
    for name in catalog.NAMES:
        folder = OUTPUT / name
        folder.mkdir(parents=True)
        (folder / "crossplane.yaml").write_text(fill(template, NAME=name))
        folders.append(folder)
    configuration = OUTPUT / "configuration"
    configuration.mkdir()
    values = {"REGISTRY": registry, "VERSION": package_version}
    for source in sorted((ROOT / "package" / "configuration").glob("*.yaml")):
        (configuration / source.name).write_text(fill(source.read_text(), **values))
    for source in sorted((ROOT / "apis").glob("*/*.yaml")):
        (configuration / f"{source.parent.name}-{source.name}").write_text(source.read_text())
    folders.append(configuration)
    (OUTPUT / "install.yaml").write_text(fill((ROOT / "package" / "install.yaml").read_text(), **values))
    shutil.copy(ROOT / "package" / "provider-config.yaml", OUTPUT / "provider-config.yaml")
    return folders


def runtime(archive: Path, name: str, target: Path) -> None:
    """Copy a docker archive of the functions' image, set to serve one function.

    Raises ValueError where it is no docker archive, or not of that image.
    """
    with tarfile.open(archive) as source, tarfile.open(target, "w") as copy:
        images = json.load(_member(source, "manifest.json"))
        if len(images) != 1:
            raise ValueError(f"it holds {len(images)} images, not one")
        config = json.load(_member(source, images[0]["Config"]))
        variables = dict(v.split("=", 1) for v in config["config"].get("Env") or [])
        if VARIABLE not in variables:
            raise ValueError(f"its image has no variable {VARIABLE}: package/Containerfile makes one that has")
        variables[VARIABLE] = name
        config["config"]["Env"] = [f"{k}={v}" for k, v in variables.items()]
        for layer in dict.fromkeys(images[0]["Layers"]):
            _add(copy, layer, _member(source, layer))
        described = [{"Config": "config.json", "RepoTags": None, "Layers": images[0]["Layers"]}]
        _add(copy, "config.json", io.BytesIO(json.dumps(config).encode()))
        _add(copy, "manifest.json", io.BytesIO(json.dumps(described).encode()))


def _member(archive: tarfile.TarFile, path: str) -> IO[bytes]:
    try:
        stream = archive.extractfile(path)
    except KeyError:
        stream = None
    if stream is None:
        raise ValueError(f"it has no {path}: save the image as a docker archive")
    return stream


def _add(archive: tarfile.TarFile, path: str, content: IO[bytes]) -> None:
    entry = tarfile.TarInfo(path)
    entry.size = content.seek(0, io.SEEK_END)
    content.seek(0)
    archive.addfile(entry, content)


def build(folder: Path, crossplane: str, archive: Path | None) -> Path:
    """Build one package; raises CalledProcessError where the CLI refuses it, ValueError where the image is another."""
    target = OUTPUT / f"{folder.name}.xpkg"
    command = [crossplane, "xpkg", "build", "-f", str(folder), "-o", str(target)]
    with TemporaryDirectory(dir=OUTPUT) as scratch:
        if archive is not None and folder.name in catalog.NAMES:
            image = Path(scratch) / "runtime.tar"
            runtime(archive, folder.name, image)
            command.append(f"--embed-runtime-image-tarball={image}")
        subprocess.run(command, check=True)
    return target


def main() -> int:
    """Stage, then build where a CLI is given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--registry", required=True, help="where packages are pushed; its last part must be modelplane")
    parser.add_argument("--version", default="v" + version("modelplane"))
    parser.add_argument("--crossplane", default="", help="the Crossplane CLI")
    parser.add_argument("--runtime", type=Path, default=None, help="docker archive of the functions' image, to embed")
    options = parser.parse_args()
    if options.registry.rstrip("/").rsplit("/", 1)[-1] != "modelplane":
        # Crossplane names a dependency's Function after its repository; Compositions call modelplane-<function>.
        parser.error("--registry must end with /modelplane")
    if options.runtime is not None and not options.crossplane:
        parser.error("--runtime needs --crossplane: the CLI embeds it")
    for folder in stage(options.registry.rstrip("/"), options.version):
        if not options.crossplane:
            print(folder.relative_to(ROOT))
            continue
        try:
            print(build(folder, options.crossplane, options.runtime).relative_to(ROOT), flush=True)
        except FileNotFoundError as error:
            parser.error(f"{error.filename} is not there")
        except (ValueError, tarfile.TarError) as error:
            parser.error(f"--runtime {options.runtime}: {error}")
        except subprocess.CalledProcessError as error:
            return int(error.returncode)
    return 0


if __name__ == "__main__":
    sys.exit(main())
