"""Kubernetes versions as clouds write them."""

import re

OLDEST = (1, 34)
"""The first with Dynamic Resource Allocation that clouds support."""

_MINOR = re.compile(r"v?([0-9]{1,3})\.([0-9]{1,4})([.+-].*)?", re.ASCII)


def check(path: str, version: str) -> str:
    """Say what is wrong with a Kubernetes version, if anything is; an empty one is the cloud XR's default."""
    if not version:
        return ""
    found = _MINOR.fullmatch(version)
    oldest = ".".join(map(str, OLDEST))
    if found is None:
        return f"{path} {version!r} is not a Kubernetes version such as {oldest}"
    if (int(found[1]), int(found[2])) < OLDEST:
        return f"{path} {version} is too old to bind GPUs to pods; use {oldest} or newer"
    return ""
