"""Deletion as an API server does it: finalizers, owners, both propagation policies, Usages."""

import pytest

from modelplane.kube.objects import Object
from modelplane.simulate.store import Key, ProtectedError, Store, key_of, uid_of

PROTECTION = "protection.crossplane.io/v1beta1"


def obj(name: str, owner: Object | None = None, *, blocks: bool = True, **meta: object) -> Object:
    made: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "a", **meta}}
    if owner is not None:
        made["metadata"]["ownerReferences"] = [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "name": owner["metadata"]["name"],
                "uid": owner["metadata"]["uid"],
                "controller": True,
                "blockOwnerDeletion": blocks,
            }
        ]
    return made


def names(store: Store) -> list[str]:
    return [o["metadata"]["name"] for o in store]


@pytest.fixture
def store() -> Store:
    return Store(lambda: 0.0)


def test_put_is_deterministic_and_counts_generations(store: Store) -> None:
    first = store.put(obj("x"))
    assert first["metadata"]["creationTimestamp"] == "1970-01-01T00:00:00Z"
    assert first["metadata"]["uid"] == uid_of(obj("x"))
    assert store.put(obj("x")) is first
    assert store.put(obj("x", labels={"a": "b"}))["metadata"]["generation"] == 1
    assert store.put({**obj("x"), "data": {"a": "b"}})["metadata"]["generation"] == 2
    store.set_status(key_of(obj("x")), {"a": 1})
    assert store.put({**obj("x"), "data": {"a": "c"}, "status": {"a": 1}})["metadata"]["generation"] == 3


def test_a_second_life_has_another_uid(store: Store) -> None:
    first = store.put(obj("x"))
    store.delete(key_of(first), by="user")
    assert store.put(obj("x"))["metadata"]["uid"] != first["metadata"]["uid"]


def test_uid_is_the_one_that_crossplane_renders() -> None:
    endpoint = {"apiVersion": "modelplane.ai/v1alpha1", "kind": "ModelEndpoint"}
    endpoint["metadata"] = {"name": "elsewhere", "namespace": "ml-team"}  # type: ignore[assignment]
    assert uid_of(endpoint) == "578b7c58-2658-59a9-bd6c-e397516024f1"


def test_background_deletion_takes_the_owner_first(store: Store) -> None:
    owner = store.put(obj("owner"))
    store.put(obj("child", owner))
    store.delete(key_of(owner), by="user")
    assert names(store) == ["child"]
    store.collect()
    assert names(store) == []
    assert [d.by for d in store.deletions] == ["user", "garbage collector"]


def test_foreground_deletion_takes_the_children_first(store: Store) -> None:
    owner = store.put(obj("owner"))
    child = store.put(obj("child", owner, finalizers=["slow"]))
    store.delete(key_of(owner), by="user", foreground=True)
    store.collect()
    assert names(store) == ["child", "owner"]
    store.set_finalizers(key_of(child), [])
    store.collect()
    assert names(store) == []


def test_a_child_that_does_not_block_does_not_hold_its_owner(store: Store) -> None:
    owner = store.put(obj("owner"))
    store.put(obj("child", owner, blocks=False, finalizers=["slow"]))
    store.delete(key_of(owner), by="user", foreground=True)
    store.collect()
    assert names(store) == ["child"]


def test_a_finalizer_holds(store: Store) -> None:
    held = store.put(obj("x", finalizers=["f"]))
    store.delete(key_of(held), by="user")
    assert store.get(key_of(held))["metadata"]["deletionTimestamp"]  # type: ignore[index]
    store.set_finalizers(key_of(held), [])
    assert store.get(key_of(held)) is None


def usage(replay: bool) -> Object:
    return {
        "apiVersion": PROTECTION,
        "kind": "Usage",
        "metadata": {"name": "u", "namespace": "a"},
        "spec": {
            "of": {"apiVersion": "v1", "kind": "ConfigMap", "resourceRef": {"name": "of"}},
            "by": {"apiVersion": "v1", "kind": "ConfigMap", "resourceRef": {"name": "by"}},
            "replayDeletion": replay,
        },
    }


@pytest.mark.parametrize("replay", [True, False])
def test_a_usage_refuses_and_replays(store: Store, replay: bool) -> None:
    protected, user = store.put(obj("of")), store.put(obj("by"))
    guard = store.put(usage(replay))
    store.collect()
    with pytest.raises(ProtectedError, match="used by ConfigMap by"):
        store.delete(key_of(protected), by="user")
    store.delete(key_of(guard), by="user")
    store.collect()
    assert names(store) == ["by", "of", "u"], "a Usage waits for what uses the resource"
    store.delete(key_of(user), by="user")
    store.collect()
    store.collect()
    assert names(store) == ([] if replay else ["of"])


def test_a_cluster_usage_by_labels_protects_what_its_composite_controls(store: Store) -> None:
    made = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {"a": "b"}}}
    store.put(made)
    guard = {"apiVersion": PROTECTION, "kind": "ClusterUsage", "metadata": {"name": "g"}}
    selector = {"matchLabels": {"a": "b"}, "matchControllerRef": True}
    guard["spec"] = {"of": {"apiVersion": "v1", "kind": "Node", "resourceSelector": selector}, "reason": "busy"}  # type: ignore[assignment]
    store.put(guard)
    with pytest.raises(ProtectedError, match="busy"):
        store.delete(Key("", "Node", "", "n"), by="user")
