"""What a ModelCache's Job passes to the hydrator is what the hydrator takes, and both mean the same exit codes."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.functions.grown import grow
from tests.functions.model_cache.test_model_cache import artifact, cache, cluster, job_of, looked_up, manifest, report
from tests.harness import Call
from tests.package.hydrator.hub_server import HubServer
from tests.package.hydrator.test_hydrator import environment

FILES = {"config.json": b"{}", "weights; rm -rf.safetensors": b"w" * 2000, "notes.md": b"n"}
PATTERNS = ["*.json", "weights; rm -rf.*", "$(id)"]


def test_the_composed_arguments_run(call: Call, tmp_path: Path) -> None:
    include = PATTERNS
    wanted = artifact(repo="Qwen/Qwen3-8B", include=include)
    xr = cache(include=include, annotations={"modelplane.ai/rehydrate": "1"})
    _, _, answer = grow(call, xr, looked_up(cluster("west"), artifacts=[wanted]), report)
    _, job = job_of(answer)
    (container,) = manifest(job)["spec"]["template"]["spec"]["containers"]
    mount = container["volumeMounts"][0]["mountPath"]
    args = [a.replace(f"--dest={mount}", f"--dest={tmp_path}") for a in container["args"]]
    hub = HubServer(FILES)
    try:
        command = [sys.executable, "-m", "modelplane_hydrator", *args, f"--endpoint={hub.url}", "--pause=0.01"]
        done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=60)
    finally:
        hub.close()
    assert done.returncode == 0, done.stderr
    assert sorted(p.name for p in (tmp_path / "model").iterdir()) == ["config.json", "weights; rm -rf.safetensors"]


@pytest.mark.parametrize("code", [64, 73])
def test_exit_codes(call: Call, code: int) -> None:
    _, _, answer = grow(call, cache(), looked_up(cluster("west")), report)
    _, job = job_of(answer)
    rules = manifest(job)["spec"]["podFailurePolicy"]["rules"]
    final = next(r["onExitCodes"]["values"] for r in rules if r["action"] == "FailJob")
    assert code in final
    assert 75 not in final
    source = Path(__file__).resolve().parents[2] / "package/hydrator/modelplane_hydrator/__init__.py"
    assert f"- {code}: " in source.read_text()
