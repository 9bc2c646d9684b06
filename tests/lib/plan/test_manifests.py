"""Reading manifests: YAML as Kubernetes reads it, and errors that name file and line."""

from pathlib import Path

import pytest

from modelplane.plan import fleet, manifests
from modelplane.plan.manifests import ManifestError

HEAD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\n"


BOMB = "x:\n  a0: &a0 [1, 2]\n" + "".join(f"  a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12))


def write(folder: Path, text: str, name: str = "file.yaml") -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2024-01-01", "2024-01-01"),
        ("2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z"),
        ("1:30", "1:30"),
        ("1e3", 1000.0),
        ("012", 10),
        ("yes", True),
        ("~", None),
        ("1.36", 1.36),
        ('"1.36"', "1.36"),
        ("-5", -5),
    ],
)
def test_scalars(tmp_path: Path, text: str, value: object) -> None:
    (read,) = manifests.read([write(tmp_path, f"{HEAD}x: {text}\n")])
    assert read.obj["x"] == value


def test_lists_are_unpacked_and_values_files_left_out(tmp_path: Path) -> None:
    write(tmp_path, "replicaCount: 1\n", "values.yaml")
    write(tmp_path, "---\n---\n" + HEAD, "a/b.yml")
    write(tmp_path, '{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "X"}]}', "c.json")
    write(tmp_path, HEAD, ".hidden/d.yaml")
    assert [m.obj["kind"] for m in manifests.read([str(tmp_path)])] == ["ConfigMap", "X"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (HEAD + "x: 1\nx: 2\n", ":5: key 'x' is there twice"),
        (HEAD + "x: [1\n", ":5: not valid YAML"),
        ("- a\n", ":1: must be an object"),
        (HEAD + "x: &a [*a]\n", ":4: an anchor holds itself"),
        (HEAD + BOMB, "aliases unfold into more than"),
    ],
)
def test_errors_name_the_line(tmp_path: Path, text: str, says: str) -> None:
    file = write(tmp_path, text)
    with pytest.raises(ManifestError, match="^" + file):
        manifests.read([file])
    with pytest.raises(ManifestError, match=says):
        manifests.read([file])


def test_a_problem_is_placed_at_its_field(tmp_path: Path) -> None:
    text = HEAD + "spec:\n  pools:\n    - name: a\n    - name: b\n      labels:\n        a/b: c\n"
    (read,) = manifests.read([write(tmp_path, text)])
    for path, line in (("spec.pools[1].name", 7), ("spec.pools[1].labels[a/b]", 9), ("spec.nope.x", 4), ("", 1)):
        assert read.place(path).endswith(f":{line}"), path


def test_the_same_object_twice_is_refused(tmp_path: Path) -> None:
    found = manifests.read([write(tmp_path, HEAD + "---\n" + HEAD)])
    with pytest.raises(ManifestError, match=r"file.yaml:5: ConfigMap b/a is also at .*file.yaml:1"):
        fleet.check(found)


def test_every_problem_is_reported_at_once(tmp_path: Path) -> None:
    service = "apiVersion: modelplane.ai/v1alpha1\nkind: ModelService\nmetadata: {name: a, namespace: b}\nspec: {}\n"
    found = manifests.read([write(tmp_path, service + "---\n" + service.replace("name: a,", "name: c,"))])
    with pytest.raises(ManifestError) as error:
        fleet.apply(fleet.world(0), found)
    assert str(error.value).count("spec.endpoints: is required") == 2
