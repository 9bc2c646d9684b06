"""The hydrator as a process: what arrives is whole and checked, what fails says why with its exit code."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.package.hydrator.hub_server import COMMIT, HubServer

SOURCE = Path(__file__).resolve().parents[3] / "package" / "hydrator"
BIG = random.Random(7).randbytes(9_000_000)
FILES = {
    "config.json": b'{"a": 1}',
    "empty.txt": b"",
    "tokenizer/tokenizer.json": b"t" * 500,
    "model-00001-of-00002.safetensors": BIG,
    "model-00002-of-00002.safetensors": b"w" * 2000,
}
ID = "abcdefghij"


@pytest.fixture
def hub() -> Iterator[HubServer]:
    server = HubServer(dict(FILES))
    yield server
    server.close()


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    place = tmp_path / "volume"
    place.mkdir()
    return place


def arguments(hub: HubServer, volume: Path, *more: str, id_: str = ID) -> list[str]:
    own = [f"--repo={hub.repo}", f"--dest={volume}", f"--id={id_}", f"--endpoint={hub.url}", "--pause=0.01"]
    return ["huggingface", *own, *more]


def command(*args: str) -> list[str]:
    return [sys.executable, "-m", "modelplane_hydrator", *args]


def environment(token: str = "") -> dict[str, str]:
    env = {"PYTHONPATH": str(SOURCE), "PATH": os.environ["PATH"], "NO_PROXY": "*"}
    return {**env, "HF_TOKEN": token} if token else env


def run(*args: str, token: str = "") -> tuple[int, str]:
    done = subprocess.run(command(*args), env=environment(token), capture_output=True, text=True, timeout=60)
    assert done.stdout == ""
    return done.returncode, done.stderr


def hydrate(hub: HubServer, volume: Path, *more: str, id_: str = ID, token: str = "") -> tuple[int, str]:
    return run(*arguments(hub, volume, *more, id_=id_), token=token)


def assert_complete(volume: Path, files: dict[str, bytes] = FILES) -> None:
    found = {str(p.relative_to(volume / "model")): p.read_bytes() for p in (volume / "model").rglob("*") if p.is_file()}
    assert found == files
    record = json.loads((volume / ".modelplane.json").read_text())
    assert (record["id"], record["commit"]) == (ID, COMMIT)
    assert {f["path"]: f["size"] for f in record["files"]} == {p: len(c) for p, c in files.items()}
    assert sorted(p.name for p in volume.iterdir()) == [".modelplane.json", "model"]


def test_everything_arrives(hub: HubServer, volume: Path) -> None:
    code, said = hydrate(hub, volume)
    assert code == 0, said
    assert_complete(volume)
    assert "5 files" in said


def test_only_what_matches(hub: HubServer, volume: Path) -> None:
    assert hydrate(hub, volume, "--include=*.json", "--include=model-00002*")[0] == 0
    want = {p: c for p, c in FILES.items() if p.endswith(".json") or "00002-of" in p}
    assert_complete(volume, want)


def test_again_needs_no_network(hub: HubServer, volume: Path) -> None:
    assert hydrate(hub, volume)[0] == 0
    hub.requests.clear()
    code, said = hydrate(hub, volume)
    assert (code, hub.requests) == (0, [])
    assert "complete already" in said


@pytest.mark.parametrize("ranges", [True, False])
def test_a_broken_connection_goes_on_where_it_stopped(hub: HubServer, volume: Path, ranges: bool) -> None:
    hub.ranges = ranges
    hub.trouble = lambda path, headers, count: (
        5_000_000 if path.endswith("00001-of-00002.safetensors") and count == 0 else None
    )
    code, said = hydrate(hub, volume)
    assert code == 0, said
    assert_complete(volume)
    asked = [h.get("Range") for p, h in hub.requests if p.endswith("00001-of-00002.safetensors")]
    assert len(asked) == 2
    assert asked[0] is None
    assert asked[1] is not None
    assert 0 < int(asked[1].removeprefix("bytes=").rstrip("-")) <= 5_000_000


def test_a_killed_run_goes_on_where_it_stopped(hub: HubServer, volume: Path) -> None:
    def slow(path: str, headers: dict[str, str], count: int) -> Any:
        if path.endswith("00001-of-00002.safetensors"):
            time.sleep(0.05 if count else 0)
            return 6_000_000 if count == 0 else 0
        return None

    hub.trouble = slow
    with subprocess.Popen(command(*arguments(hub, volume, "--pause=0.2")), env=environment()) as process:
        incomplete = volume / ".partial/files/model-00001-of-00002.safetensors.incomplete"
        deadline = time.monotonic() + 20
        while not (incomplete.exists() and incomplete.stat().st_size > 4_000_000) and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 128 + signal.SIGTERM
    assert not (volume / "model").exists()
    hub.trouble = lambda path, headers, count: None
    hub.requests.clear()
    assert hydrate(hub, volume)[0] == 0
    assert_complete(volume)
    (asked,) = [h.get("Range") for p, h in hub.requests if p.endswith("00001-of-00002.safetensors")]
    assert asked is not None
    assert any(p.endswith(f"/revision/{COMMIT}?blobs=true") for p in hub.paths()), "the commit is pinned"


def test_a_moving_branch_never_mixes_commits(hub: HubServer, volume: Path) -> None:
    hub.trouble = lambda path, headers, count: (503, {}) if "00001-of" in path else None
    assert hydrate(hub, volume)[0] == 75
    moved = HubServer({**FILES, "config.json": b"new"})
    moved.commit = "b" * 40
    try:
        assert hydrate(moved, volume)[0] == 64, "the commit that was begun is gone"
        assert not (volume / "model").exists()
    finally:
        moved.close()


@pytest.mark.parametrize("what", ["config.json", "model-00002-of-00002.safetensors"])
def test_wrong_bytes_are_never_kept(hub: HubServer, volume: Path, what: str) -> None:
    good = hub.listing
    hub.listing = lambda siblings: good(
        [
            {**s, "blobId": "0" * 40, "lfs": s.get("lfs") and {**s["lfs"], "sha256": "0" * 64}}
            if s["rfilename"] == what
            else s
            for s in siblings
        ]
    )
    code, said = hydrate(hub, volume)
    assert code == 75
    assert what in said
    assert not (volume / "model").exists()
    assert not (volume / ".partial/files" / what).exists()


@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_a_busy_hub_is_asked_again(hub: HubServer, volume: Path, status: int) -> None:
    hub.trouble = lambda path, headers, count: (
        (status, {"Retry-After": "0.01"}) if "resolve" in path and count < 2 else None
    )
    assert hydrate(hub, volume)[0] == 0
    assert_complete(volume)


@pytest.mark.parametrize(
    "status, headers, words",
    [
        (401, {"X-Error-Code": "RepoNotFound"}, ["access", "does not exist"]),
        (403, {"X-Error-Code": "GatedRepo"}, ["asked for on the hub"]),
        (404, {"X-Error-Code": "RepoNotFound"}, ["does not exist", "RepoNotFound"]),
        (451, {}, ["451"]),
    ],
)
@pytest.mark.parametrize("where", ["api", "resolve"])
def test_what_no_retry_changes(hub: HubServer, volume: Path, where: str, status: int, headers: Any, words: Any) -> None:
    hub.trouble = lambda path, _, count: (status, headers) if where in path else None
    code, said = hydrate(hub, volume)
    assert code == 64
    assert all(w in said for w in words)
    assert "Traceback" not in said


def test_an_unreachable_hub(volume: Path, hub: HubServer) -> None:
    hub.close()
    code, said = hydrate(hub, volume)
    assert code == 75
    assert "Traceback" not in said


@pytest.mark.parametrize("answer", [b"<html>", b"{}", b"[]", b'{"sha": 1, "siblings": 7}'])
def test_an_answer_that_is_no_listing(hub: HubServer, volume: Path, answer: bytes, monkeypatch: Any) -> None:
    monkeypatch.setattr("json.dumps", lambda raw: answer.decode())
    code, said = hydrate(hub, volume)
    assert code in (64, 75)
    assert "Traceback" not in said


@pytest.mark.parametrize(
    "path", ["../evil", "/etc/evil", "a/../../evil", "a//b", "", ".", "a\\b", "a\x00b", "a\nb", "x" * 2000, 7, None]
)
def test_a_hostile_listing_writes_nothing(hub: HubServer, volume: Path, path: Any) -> None:
    hub.listing = lambda siblings: [{**siblings[0], "rfilename": path}]
    code, said = hydrate(hub, volume)
    assert code == 64, said
    assert "cannot be stored" in said
    assert list(volume.parent.rglob("*evil*")) == []
    assert not (volume / "model").exists()


@pytest.mark.parametrize("strange", [{"size": -1}, {"size": "9"}, {"blobId": None}, {"size": True}])
def test_a_listing_without_size_or_hash(hub: HubServer, volume: Path, strange: Any) -> None:
    hub.listing = lambda siblings: [{**siblings[0], **strange}]
    assert hydrate(hub, volume)[0] == 64


def test_nothing_matches(hub: HubServer, volume: Path) -> None:
    code, said = hydrate(hub, volume, "--include=*.gguf")
    assert code == 64
    assert "*.gguf" in said


def test_the_volume_is_too_small(hub: HubServer, volume: Path) -> None:
    hub.listing = lambda siblings: [{**siblings[0], "lfs": {"sha256": "0" * 64, "size": 10**18}}]
    code, said = hydrate(hub, volume)
    assert code == 73
    assert "GiB" in said
    assert not [p for p in hub.paths() if "resolve" in p]


def test_another_artifact_is_left_alone(hub: HubServer, volume: Path) -> None:
    assert hydrate(hub, volume)[0] == 0
    code, said = hydrate(hub, volume, id_="zzzzzzzzzz")
    assert code == 64
    assert "another artifact" in said
    assert_complete(volume)


def test_damage_is_found_and_repaired(hub: HubServer, volume: Path) -> None:
    assert hydrate(hub, volume)[0] == 0
    weights, config = volume / "model/model-00002-of-00002.safetensors", volume / "model/config.json"
    weights.write_bytes(b"x" * 2000)
    hub.requests.clear()
    assert hydrate(hub, volume)[0] == 0
    assert hub.requests == [], "sizes alone do not show it"
    untouched = (volume / "model/model-00001-of-00002.safetensors").stat().st_ino
    config.unlink()
    assert hydrate(hub, volume, "--verify=hashes")[0] == 0
    assert_complete(volume)
    assert (volume / "model/model-00001-of-00002.safetensors").stat().st_ino == untouched


def test_a_crash_before_the_record(hub: HubServer, volume: Path) -> None:
    assert hydrate(hub, volume)[0] == 0
    (volume / ".modelplane.json").unlink()
    hub.requests.clear()
    assert hydrate(hub, volume)[0] == 0
    assert_complete(volume)
    assert not [p for p in hub.paths() if "resolve" in p]
    (volume / ".modelplane.json").write_text("{")
    assert hydrate(hub, volume)[0] == 0
    assert_complete(volume)


def test_the_token_goes_to_the_hub_only(hub: HubServer, volume: Path) -> None:
    elsewhere = HubServer(dict(FILES))
    hub.cdn = elsewhere.url.replace("127.0.0.1", "localhost")
    try:
        code, said = hydrate(hub, volume, token="hf_secret\n")
    finally:
        elsewhere.close()
    assert code == 0, said
    assert_complete(volume)
    assert {h.get("Authorization") for _, h in hub.requests} == {"Bearer hf_secret"}
    assert {p.removeprefix("/cdn/") for p in elsewhere.paths()} == {p for p, content in FILES.items() if content}
    assert all("Authorization" not in h for _, h in elsewhere.requests)
    assert "hf_secret" not in said
    assert not [p for p in volume.rglob("*") if p.is_file() and b"hf_secret" in p.read_bytes()]


def test_the_token_follows_a_redirect_on_the_hub(hub: HubServer, volume: Path) -> None:
    hub.cdn = hub.url
    assert hydrate(hub, volume, token="hf_secret")[0] == 0
    assert {h.get("Authorization") for _, h in hub.requests} == {"Bearer hf_secret"}


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["s3"],
        ["huggingface"],
        ["huggingface", "--repo=a b", "--dest=.", "--id=x"],
        ["huggingface", "--repo=../x", "--dest=.", "--id=x"],
        ["huggingface", "--repo=a/b", "--dest=/nonexistent", "--id=x"],
        ["huggingface", "--repo=a/b", "--revision=../x", "--dest=.", "--id=x"],
        ["huggingface", "--repo=a/b", "--endpoint=file:///etc", "--dest=.", "--id=x"],
        ["huggingface", "--repo=a/b", "--dest=.", "--id=x", "--verify=all"],
        ["huggingface", "--repo=a/b", "--dest=.", "--id=x", "--inc=y"],
        ["huggingface", "--repo=a/b", "--dest=.", "--id=x", "extra"],
    ],
)
def test_bad_arguments(args: list[str]) -> None:
    code, said = run(*args)
    assert code == 64
    assert said.startswith("hydrate: failed: ")
    assert "Traceback" not in said


def test_the_recipes_zip_runs(hub: HubServer, volume: Path, tmp_path: Path) -> None:
    source = tmp_path / "src"
    shutil.copytree(SOURCE / "modelplane_hydrator", source / "modelplane_hydrator")
    zipped = tmp_path / "hydrate"
    recipe = (SOURCE / "Containerfile").read_text()
    assert "--main modelplane_hydrator.command:run" in recipe
    make = [sys.executable, "-m", "zipapp", str(source), "--main", "modelplane_hydrator.command:run"]
    subprocess.run([*make, "--python", f"{sys.executable} -I", "--output", str(zipped)], check=True)
    done = subprocess.run([str(zipped), *arguments(hub, volume)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert_complete(volume)
