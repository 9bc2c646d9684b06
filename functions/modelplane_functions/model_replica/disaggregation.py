"""Prefill and decode apart: one engine reads the prompt, the other writes the answer.

A decode pod carries a proxy on the public port; it asks a prefill pod first where the picker named one, and hands the
request to its own engine, which listens behind it. Without a picker the decode engine does both: correct, slower.

Source: https://github.com/llm-d/llm-d-router/blob/v0.9.0/pkg/sidecar/proxy/options.go
"""

from collections.abc import Sequence

from modelplane.kube.objects import Object
from modelplane.kube.problem import Problem, quote
from modelplane_functions.model_replica.inputs import DECODE, PREFILL_DECODE, Engine, Member, Replica

IMAGE = "ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.9.0"
ROLE = "llm-d.ai/role"
ENGINE_PORT = 8200
"""Where a decode engine listens behind its proxy."""
PORT_ARG = "--port"

_NIXL_HOST, _NIXL_PORT = "VLLM_NIXL_SIDE_CHANNEL_HOST", "VLLM_NIXL_SIDE_CHANNEL_PORT"


def role(engine: Engine) -> str:
    """Value of the role label: prefill or decode."""
    return engine.phase.lower()


def port_conflict(replica: Replica) -> Problem | None:
    """Find a decode engine that is told to listen elsewhere than behind its proxy."""
    if replica.mode != PREFILL_DECODE:
        return None
    for index, engine in enumerate(replica.engines):
        member = next(m for m in engine.members if m.serves)
        found = _port(member.args)
        if engine.phase == DECODE and found not in ("", str(ENGINE_PORT)):
            return Problem(
                f"spec.engines[{index}]",
                f"got {PORT_ARG} {quote(found)}; the decode engine listens on {ENGINE_PORT}, behind the proxy that "
                f"listens on http.port: leave {PORT_ARG} out",
            )
    return None


def args(member: Member) -> list[str]:
    """Arguments of a decode engine; one that has a command of its own must listen on 8200 by itself."""
    found = list(member.args)
    if not member.command and not _port(member.args):
        found.append(f"{PORT_ARG}={ENGINE_PORT}")
    return found


def environment(member: Member) -> list[Object]:
    """Where engines hand each other their caches, where the user has not said it."""
    named = {variable.get("name") for variable in member.env}
    ours: list[Object] = [
        {"name": _NIXL_HOST, "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": _NIXL_PORT, "value": "5557"},
    ]
    return [variable for variable in ours if variable["name"] not in named]


def proxy(engine: Engine, port_name: str) -> Object:
    """Build the proxy as a sidecar: an init container that keeps running."""
    return {
        "name": "routing-proxy",
        "image": IMAGE,
        "restartPolicy": "Always",
        "args": [
            f"--port={engine.port}",
            f"--vllm-port={ENGINE_PORT}",
            "--kv-connector=nixlv2",
            "--secure-proxy=false",
            "--tracing=false",
        ],
        "ports": [{"name": port_name, "containerPort": engine.port, "protocol": "TCP"}],
        "readinessProbe": {
            "httpGet": {"path": "/health", "port": port_name},
            "periodSeconds": 5,
            "timeoutSeconds": 5,
            "failureThreshold": 3,
        },
        "resources": {"requests": {"cpu": "500m", "memory": "256Mi"}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }


def _port(words: Sequence[str]) -> str:
    """The value of the last --port; "?" where its value is missing."""
    found = ""
    for index, word in enumerate(words):
        if word == PORT_ARG:
            found = words[index + 1] if index + 1 < len(words) else "?"
        elif word.startswith(f"{PORT_ARG}="):
            found = word.removeprefix(f"{PORT_ARG}=") or "?"
    return found
