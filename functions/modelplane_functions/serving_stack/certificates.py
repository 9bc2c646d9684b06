"""The certificates that a workload gateway is trusted by.

They come from a Secret, so what leaves this module is certificates and nothing else: a Secret that holds a private key
is refused, whatever key of it was asked for.
"""

import base64
import binascii
import re

from modelplane.kube.objects import Resource, strings, text
from modelplane.xfn import Request, Response
from modelplane_functions.serving_stack.inputs import Stack

REQUIREMENT = "gateway-ca"

_MAX = 131072
_BLOCK = re.compile(r"-----BEGIN CERTIFICATE-----\s+([A-Za-z0-9+/=\s]+?)-----END CERTIFICATE-----")
_BEGIN = "-----BEGIN "


def asked(stack: Stack) -> str:
    """Name of the Secret that the spec names, or empty."""
    return text(stack.gateway, "caSecretRef", "name")


def require(rsp: Response, stack: Stack) -> None:
    """Ask for the Secret that the spec names."""
    if asked(stack):
        rsp.require(REQUIREMENT, "v1", "Secret", match_name=asked(stack), namespace=stack.namespace)


def read(req: Request, stack: Stack) -> tuple[str, str]:
    """Read the bundle: PEM text, or empty and what to do about it."""
    key = text(stack.gateway, "caSecretRef", "key") or "ca.crt"
    where = f"Secret {stack.namespace}/{asked(stack)}"
    if not req.answered(REQUIREMENT):
        return "", f"Waiting for {where}."
    secret = req.required_one(REQUIREMENT)
    if secret is None:
        return "", f"{where} of spec.gateway.caSecretRef is not found; create it with the certificates under {key}."
    if any("PRIVATE KEY" in _decoded(value) for value in strings(secret.raw, "data").values()):
        return "", f"{where} holds a private key; spec.gateway.caSecretRef takes a Secret with certificates only."
    return _bundle(secret, key, where)


def _bundle(secret: Resource, key: str, where: str) -> tuple[str, str]:
    pem = _decoded(secret.text("data", key))
    blocks = [match.group(0) for match in _BLOCK.finditer(pem) if _is_base64(match.group(1))]
    if not blocks or len(blocks) != pem.count(_BEGIN):
        return "", f"{where}: key {key} does not hold PEM certificates."
    bundle = "\n".join("\n".join(line.strip() for line in b.splitlines() if line.strip()) for b in blocks) + "\n"
    if len(bundle) > _MAX:
        return "", f"{where}: key {key} holds more than {_MAX} characters; keep only the certificates that sign."
    return bundle, ""


def _decoded(value: str) -> str:
    try:
        return base64.b64decode(value, validate=True).decode("ascii", errors="replace")
    except (binascii.Error, ValueError):
        return ""


def _is_base64(body: str) -> bool:
    try:
        return bool(base64.b64decode("".join(body.split()), validate=True))
    except (binascii.Error, ValueError):
        return False
