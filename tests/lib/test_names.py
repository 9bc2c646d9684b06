"""Names are promises: a changed name is a deleted and re-created object."""

import re

import pytest

from modelplane import names

LONG = "a" * 63

GOLDEN = [
    (names.replica, ("ml-team", "qwen", "west", 0), "qwen-"),
    (names.workload, ("qwen-abc", "main"), "qwen-abc-main-"),
    (names.tenant_namespace, ("ml-team",), "mp-ml-team-"),
    (names.backend, ("ml-team", "openrouter"), "openrouter-"),
    (names.retry, ("ml-team", "chat"), "chat-"),
]

VECTORS = {
    ("replica", "ml-team", "qwen", "west", "0"): "cqmuj45xtb",
    ("ns", "ml-team"): "yre2nsrod6",
    ("backend", "ml-team", "openrouter"): "ev44pq23gv",
    ("retry", "ml-team", "chat"): "dltvotqvjo",
}


@pytest.mark.parametrize("parts, want", VECTORS.items())
def test_digest_vectors(parts, want):
    assert names.digest(*parts) == want


@pytest.mark.parametrize("build, args, start", GOLDEN)
def test_readable_start(build, args, start):
    assert build(*args).startswith(start)


def test_joins_are_injective():
    assert names.digest("x", "a-b", "c") != names.digest("x", "a", "b-c")
    assert names.replica("n", "a-b", "c", 0) != names.replica("n", "a", "b-c", 0)
    assert names.replica("n1", "a", "b", 0) != names.replica("n2", "a", "b", 0)


@pytest.mark.parametrize(
    "name, limit",
    [
        (names.replica(LONG, LONG, LONG, 99), 40),
        (names.replica("n", "9-starts-with-a-digit", "c", 0), 40),
        (names.workload(names.replica(LONG, LONG, LONG, 99), "e" * 30), 45),
        (names.tenant_namespace(LONG), 52),
        (names.backend(LONG, LONG), 52),
        (names.retry(LONG, LONG), 52),
        (names.replica_id("n", LONG), 40),
        (names.replica_id("n", "9digit"), 40),
        (names.name("--", "x", limit=20), 20),
    ],
)
def test_legal_and_short(name, limit):
    assert len(name) <= limit
    assert re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", name)


def test_replica_id_is_the_name_where_it_fits():
    made = names.replica("n", "qwen", "west", 3)
    assert names.replica_id("n", made) == made


@pytest.mark.parametrize(
    "parts, want",
    [
        (("modelcache", "ml-team", "qwen"), "modelcache-ml-team-qwen-17db2"),
        (("modelcache", "ml-team", "qwen", "hydrate"), "modelcache-ml-team-qwen-hydrate-256ec"),
        (("my-model-5ab63", "main"), "my-model-5ab63-main-216f1"),
    ],
)
def test_child_keeps_the_names_of_existing_fleets(parts, want):
    assert names.child(*parts) == want
