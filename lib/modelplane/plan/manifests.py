"""Manifests from files, folders and standard input, each with where it stands."""

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from modelplane.kube.objects import Object, objects, text

SUFFIXES = (".yaml", ".yml", ".json")
STDIN = "-"
NODES_MAX = 1_000_000

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Base):  # type: ignore[misc]
    """YAML as Kubernetes reads it: dates and base-60 numbers are strings."""


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("bool", r"^(?:yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$", "yYnNtTfFoO"),
    ("int", r"^(?:[-+]?0b[01_]+|[-+]?0o?[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+)$", "-+0123456789"),
    ("float", r"^(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|[-+]?[0-9]+[eE][-+]?[0-9]+)$", "-+0123456789."),
    ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("merge", r"^(?:<<)$", ["<"]),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), list(_first))


class ManifestError(Exception):
    """A file cannot be read as manifests; the message names file, line and cause."""


@dataclass(frozen=True)
class Manifest:
    """One object and where it stands: `line` is its first line, counted from one."""

    obj: Object
    file: str
    line: int
    node: Any = None

    def place(self, path: str = "") -> str:
        """`file:line` of a field of the object, or of the nearest field that is there."""
        return f"{self.file}:{_line(self.node, path, self.line)}"


def read(paths: Sequence[str]) -> list[Manifest]:
    """Read every manifest under the paths, in the order of paths, file names and documents; `-` is standard input.

    Lists are unpacked. Documents without apiVersion and kind, as in Helm values, are left out.
    Raises ManifestError.
    """
    return [m for path in paths for file in _files(path) for m in _read(file)]


def _files(path: str) -> list[str]:
    if path == STDIN:
        return [STDIN]
    place = Path(path)
    if place.is_dir():
        found = sorted(str(p) for p in place.rglob("*") if p.suffix in SUFFIXES and not _hidden(p, place))
        if not found:
            raise ManifestError(f"{path}: no {', '.join(SUFFIXES)} file in this folder")
        return found
    if not place.exists():
        raise ManifestError(f"{path}: no such file or folder")
    return [path]


def _hidden(path: Path, root: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(root).parts)


def _read(file: str) -> Iterator[Manifest]:
    name = "standard input" if file == STDIN else file
    try:
        source = sys.stdin.read() if file == STDIN else Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ManifestError(f"{name}: cannot be read: {error}") from error
    loader = _Loader(source)
    try:
        while loader.check_node():
            node = loader.get_node()
            _check(node, name)
            yield from _unpack(loader.construct_document(node), node, name)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f":{mark.line + 1}" if mark is not None else ""
        raise ManifestError(f"{name}{line}: not valid YAML: {error.problem or error.context}") from error
    except RecursionError as error:
        raise ManifestError(f"{name}: nested too deeply") from error
    except (yaml.YAMLError, ValueError) as error:
        raise ManifestError(f"{name}: not valid YAML: {str(error).splitlines()[0]}") from error
    finally:
        loader.dispose()


def _unpack(document: Any, node: Any, file: str) -> Iterator[Manifest]:
    if document is None:
        return
    line = _start(node)
    if not isinstance(document, dict):
        raise ManifestError(f"{file}:{line}: must be an object with apiVersion and kind")
    if text(document, "kind").endswith("List") and isinstance(document.get("items"), list):
        nodes = _child(node, "items")
        for index, item in enumerate(objects(document, "items")):
            child = nodes.value[index] if nodes is not None and index < len(nodes.value) else node
            yield Manifest(dict(item), file, child.start_mark.line + 1, child)
        return
    if text(document, "apiVersion") and text(document, "kind"):
        yield Manifest(document, file, line, node)


def _check(node: Any, file: str) -> None:
    """Refuse what YAML readers resolve silently or without end.

    That is a mapping that names a key twice, an anchor that holds itself, and aliases that unfold into more than
    NODES_MAX nodes.
    """
    sizes: dict[int, int] = {}
    stack = [(node, False)]
    open_nodes: set[int] = set()
    while stack:
        current, done = stack.pop()
        mark = id(current)
        if done:
            open_nodes.discard(mark)
            sizes[mark] = 1 + sum(sizes[id(child)] for child in _children(current))
            if sizes[mark] > NODES_MAX:
                raise ManifestError(f"{file}:{_start(current)}: aliases unfold into more than {NODES_MAX} values")
        elif mark in open_nodes:
            raise ManifestError(f"{file}:{_start(current)}: an anchor holds itself")
        elif mark not in sizes:
            _check_keys(current, file)
            open_nodes.add(mark)
            stack.append((current, True))
            stack += [
                (child, False) for child in _children(current) if id(child) not in sizes or id(child) in open_nodes
            ]


def _start(node: Any) -> int:
    return int(node.start_mark.line) + 1


def _children(node: Any) -> list[Any]:
    if isinstance(node, yaml.MappingNode):
        return [value for _, value in node.value]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _check_keys(node: Any, file: str) -> None:
    if not isinstance(node, yaml.MappingNode):
        return
    seen: set[str] = set()
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode) and key.value in seen and key.value != "<<":
            raise ManifestError(f"{file}:{_start(key)}: key {key.value!r} is there twice")
        seen.add(str(key.value))


def _child(node: Any, key: str) -> Any:
    if isinstance(node, yaml.MappingNode):
        for name, value in node.value:
            if name.value == key:
                return value
    if isinstance(node, yaml.SequenceNode) and key.isdigit() and int(key) < len(node.value):
        return node.value[int(key)]
    return None


def _key_line(node: Any, key: str) -> int | None:
    if isinstance(node, yaml.MappingNode):
        for name, _ in node.value:
            if name.value == key:
                return int(name.start_mark.line) + 1
    return None


def _line(node: Any, path: str, start: int) -> int:
    line = start
    for part in _parts(path):
        child = _child(node, part)
        if child is None:
            break
        line = _key_line(node, part) or int(child.start_mark.line) + 1
        node = child
    return line


def _parts(path: str) -> list[str]:
    """Split a problem's path: names joined by dots, other keys and indices in brackets."""
    return [name or key for name, key in re.findall(r"([^.\[\]]+)|\[([^\]]*)\]", path)]
