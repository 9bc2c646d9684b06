"""Stage and build the packages: one Configuration and one Function package per composition function.

    python package/packages.py --registry REGISTRY/modelplane [--crossplane CLI] [--runtime DIR]

Writes `_output/packages/<name>/` as the Crossplane CLI takes it, and `<name>.xpkg` beside it with `--crossplane`.
`--runtime` is a folder with one docker archive per function, `<name>.tar`, to embed.
"""

import argparse
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from modelplane import catalog

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "_output" / "packages"


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


def build(folder: Path, crossplane: str, runtime: Path | None) -> Path:
    """Build one package; raises CalledProcessError where the CLI refuses it."""
    target = OUTPUT / f"{folder.name}.xpkg"
    command = [crossplane, "xpkg", "build", "-f", str(folder), "-o", str(target)]
    if runtime is not None and folder.name in catalog.NAMES:
        command.append(f"--embed-runtime-image-tarball={runtime / (folder.name + '.tar')}")
    subprocess.run(command, check=True)
    return target


def main() -> int:
    """Stage, then build where a CLI is given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--registry", required=True, help="where packages are pushed; its last part must be modelplane")
    parser.add_argument("--version", default="v" + version("modelplane"))
    parser.add_argument("--crossplane", default="", help="the Crossplane CLI")
    parser.add_argument("--runtime", type=Path, default=None)
    options = parser.parse_args()
    if options.registry.rstrip("/").rsplit("/", 1)[-1] != "modelplane":
        # Crossplane names a dependency's Function after its repository; Compositions call modelplane-<function>.
        parser.error("--registry must end with /modelplane")
    for folder in stage(options.registry.rstrip("/"), options.version):
        if options.crossplane:
            print(build(folder, options.crossplane, options.runtime).relative_to(ROOT))
        else:
            print(folder.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
