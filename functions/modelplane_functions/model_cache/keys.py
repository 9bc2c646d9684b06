"""Composition keys: what a composed Object is for, readable from its key."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

NAMESPACE, SECRET, CLAIM, HYDRATE = "namespace-", "secret-", "claim-", "hydrate-"
USAGE = "usage-replicas"
ARTIFACT_SIZE = 10
TEMPLATE_SIZE = 8


@dataclass(frozen=True)
class Staged:
    """What is observed on one cluster: its claims by artifact, its Jobs by artifact, and everything by key."""

    cluster: str
    claims: dict[str, str]
    jobs: dict[str, list[str]]
    every: list[str]


def claim(cluster: str, artifact: str) -> str:
    """Key of the claim of an artifact."""
    return f"{CLAIM}{cluster}-{artifact}"


def hydrate(cluster: str, artifact: str, template: str) -> str:
    """Key of a Job that fetches an artifact."""
    return f"{HYDRATE}{cluster}-{artifact}-{template}"


def staged(observed: Iterable[str]) -> dict[str, Staged]:
    """What is observed, by cluster; keys of no known shape belong to none and are held as they are."""
    found: dict[str, Staged] = {}

    def at(cluster: str, key: str) -> Staged:
        entry = found.setdefault(cluster, Staged(cluster, {}, {}, []))
        entry.every.append(key)
        return entry

    for key in sorted(observed):
        if key.startswith(CLAIM):
            cluster, _, artifact = key.removeprefix(CLAIM).rpartition("-")
            if cluster and len(artifact) == ARTIFACT_SIZE:
                at(cluster, key).claims[artifact] = key
        elif key.startswith(HYDRATE):
            rest, _, template = key.removeprefix(HYDRATE).rpartition("-")
            cluster, _, artifact = rest.rpartition("-")
            if cluster and len(artifact) == ARTIFACT_SIZE and len(template) == TEMPLATE_SIZE:
                at(cluster, key).jobs.setdefault(artifact, []).append(key)
        elif key.startswith((NAMESPACE, SECRET)):
            at(key.partition("-")[2], key)
    return found
