"""No answer of any function holds a value of a Secret, or of a ConfigMap that is filled from elsewhere.

Every example lives in one control plane whose Secrets hold a marker. provider-kubernetes writes what it copies into the
Object's spec, and may repeat it in an error message; a function sees both, and must hand on neither.
"""

import base64
import copy
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.functions.grown import conditions

from modelplane.simulate import World, definitions
from modelplane.simulate.store import group_of, key_of
from modelplane.simulate.world import UnsettledError
from modelplane.xfn.caller import Answer, Caller, Transport, over_grpc

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
GROUPS = {group for group, _ in definitions.load()}
KINDS = sorted(kind for _, kind in definitions.load())
SHOWN = {"ModelCache", "ModelReplica", "ServingStack"}
"""Kinds whose functions see values: in what they composed, or in a Secret they ask for."""
Object = dict[str, Any]

WORD = "xq7-never-to-be-sent"
MARKER = base64.b64encode(WORD.encode()).decode()
WORDS = (WORD, MARKER)

KEYS = ("HF_TOKEN", "token", "kubeconfig", "private_key", "ca.crt", "mode", ".dockerconfigjson")
NAMED = (
    ("Secret", "ml-team", "hugging-face"),
    ("Secret", "ml-team", "registry"),
    ("Secret", "ml-team", "provider-ca"),
    ("Secret", "modelplane-system", "gateway-ca"),
    *(("Secret", "modelplane-system", f"{name}-kubeconfig") for name in ("on-prem", "east", "west", "virginia")),
)
WITH_SECRETS = """
apiVersion: modelplane.ai/v1alpha1
kind: ModelCache
metadata: {name: gated, namespace: ml-team}
spec:
  source: HuggingFace
  huggingFace: {repo: meta-llama/Llama-3.3-70B, sizeGiB: 200, authSecret: {name: hugging-face, key: token}}
---
apiVersion: modelplane.ai/v1alpha1
kind: ModelEndpoint
metadata: {name: with-ca, namespace: ml-team}
spec:
  url: https://models.example.com/v1
  tls: {caSecretRef: {name: provider-ca}}
---
apiVersion: infrastructure.modelplane.ai/v1alpha1
kind: ServingStack
metadata: {name: with-ca, namespace: modelplane-system}
spec:
  secrets: [{type: Kubeconfig, name: west-kubeconfig, key: kubeconfig}]
  gateway: {caSecretRef: {name: gateway-ca, key: ca.crt}}
---
apiVersion: modelplane.ai/v1alpha1
kind: ModelReplica
metadata: {name: with-env, namespace: ml-team, labels: {modelplane.ai/cluster: west}}
spec:
  clusterName: west
  engines:
    - name: vllm
      members:
        - role: Standalone
          nodePoolName: h100
          template:
            spec:
              imagePullSecrets: [{name: registry}]
              containers:
                - name: engine
                  image: docker.io/vllm/vllm-openai:v0.11.0
                  env:
                    - {name: HF_TOKEN, valueFrom: {secretKeyRef: {name: hugging-face, key: token}}}
                    - {name: MODE, valueFrom: {configMapKeyRef: {name: settings, key: mode}}}
"""


def source(kind: str, namespace: str, name: str) -> Object:
    """A Secret or ConfigMap that a user made."""
    value = MARKER if kind == "Secret" else WORD
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": kind, "metadata": meta, "data": dict.fromkeys(KEYS, value)}


def leaks(payload: bytes) -> list[str]:
    return [word for word in WORDS if word.encode() in payload]


class Listener:
    """A transport that keeps what leaks through it."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.leaked: list[str] = []
        self.asked = False

    def __call__(self, payload: bytes) -> bytes:
        answer = self._transport(payload)
        self.asked = self.asked or bool(leaks(payload))
        self.leaked += leaks(answer)
        return answer


@pytest.fixture(scope="module")
def listener(target: str) -> Iterator[Listener]:
    transport, close = over_grpc(target)
    yield Listener(transport)
    close()


@pytest.fixture(scope="module")
def fleet(listener: Listener) -> World:
    """Every example, and one of each kind that names a Secret."""
    world = World(Caller(listener))
    for made in (*(source(*n) for n in NAMED), source("ConfigMap", "ml-team", "settings")):
        world.apply(made)
    for file in sorted(EXAMPLES.glob("*/*.yaml")):
        world.apply(d for d in yaml.safe_load_all(file.read_text()) if d and group_of(d["apiVersion"]) in GROUPS)
    world.apply(WITH_SECRETS)
    keep_downloading(world, "gated")
    assert world.settle().errors == {}
    return world


def keep_downloading(world: World, cache: str) -> None:
    """Settle while the cache's Jobs never end: once they do, the copy of its token goes."""
    for _ in range(20):
        with suppress(UnsettledError):
            world.settle(rounds=1)
        for obj in world.select("Object", labels={"crossplane.io/composite": cache}):
            if obj["spec"]["forProvider"]["manifest"]["kind"] == "Job":
                world.providers.broken.add(key_of(obj))


def test_from_creation_to_rest(fleet: World, listener: Listener) -> None:
    assert listener.asked, "no function ever saw a value: the test shows nothing"
    assert listener.leaked == []


def patched(observed: Mapping[str, Object], *, refused: bool) -> dict[str, Object]:
    """Composed resources as a provider leaves them: values in the spec, in the status, in what it says."""
    found = copy.deepcopy(dict(observed))
    for resource in found.values():
        manifest = resource.get("spec", {}).get("forProvider", {}).get("manifest", {})
        secret = manifest.get("kind") == "Secret"
        if not secret and not (manifest.get("kind") == "ConfigMap" and resource["spec"].get("references")):
            continue
        manifest["data"] = {"token": MARKER, "HF_TOKEN": MARKER, "mode": WORD}
        manifest["stringData" if secret else "binaryData"] = {"token": WORD, "b": MARKER}
        resource.setdefault("status", {})["atProvider"] = {"manifest": copy.deepcopy(manifest)}
        if refused:
            resource["status"]["conditions"] = conditions(ready=False, synced=False)
    return found


def garbled(xr: Object) -> Object:
    return {**xr, "spec": dict.fromkeys(xr.get("spec", {}), 7)}


PASSES: dict[str, Any] = {
    "steady": lambda xr, seen: (xr, seen),
    "nothing looked up yet": lambda xr, seen: (xr, {}),
    "everything else is gone": lambda xr, seen: (xr, {name: [] for name in seen}),
    "a spec that cannot be read": lambda xr, seen: (garbled(xr), seen),
    "an empty spec": lambda xr, seen: ({**xr, "spec": {}}, seen),
}


@pytest.mark.parametrize("refused", [False, True], ids=["applied", "refused"])
@pytest.mark.parametrize("what", PASSES)
@pytest.mark.parametrize("kind", KINDS)
def test_on_every_path(fleet: World, listener: Listener, kind: str, what: str, refused: bool) -> None:
    composites = fleet.select(kind)
    assert composites
    listener.leaked, listener.asked = [], False
    caller = Caller(listener)
    for xr in composites:
        name, namespace = xr["metadata"]["name"], xr["metadata"].get("namespace", "")
        observed = patched(fleet.composed(kind, name, namespace), refused=refused)
        changed, seen = PASSES[what](xr, looked_up(fleet, caller, xr, observed))
        caller.call(changed, observed, seen)
        assert listener.leaked == [], f"{kind} {name}"
    assert listener.asked or kind not in SHOWN, "the function never saw a value: the test shows nothing"


def looked_up(fleet: World, caller: Caller, xr: Object, observed: Mapping[str, Object]) -> dict[str, list[Object]]:
    """What Crossplane would hand to the last call of a pass."""
    seen: dict[str, list[Object]] = {}
    for _ in range(6):
        answer: Answer = caller.call(xr, observed, seen)
        after = {name: list(fleet.crossplane.fetch(s)) for name, s in answer.requirements.items()}
        if after.keys() == seen.keys():
            break
        seen = after
    return seen
