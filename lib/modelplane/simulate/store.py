"""Objects as an API server keeps them, with its garbage collector.

Source: https://kubernetes.io/docs/concepts/architecture/garbage-collection/
"""

import copy
import uuid
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from modelplane.kube.objects import Object, items, mapping, objects, strings, text
from modelplane.labels import FOREGROUND

PROTECTION_GROUP = "protection.crossplane.io"
USAGE_FINALIZER = "usage.apiextensions.crossplane.io"
_BARE = frozenset({"metadata", "status"})


class Key(NamedTuple):
    """Identity of an object; an empty namespace is a cluster-scoped one's."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


class Deletion(NamedTuple):
    """A deletion that was asked for: what, by whom and why."""

    key: Key
    by: str
    why: str


class ProtectedError(Exception):
    """A Usage refuses a deletion; the message says which and why."""


def group_of(api_version: str) -> str:
    """Group of an apiVersion; the core group is empty."""
    return api_version.rpartition("/")[0]


def key_of(obj: Mapping[str, Any]) -> Key:
    """Identity of an object."""
    return Key(
        group_of(text(obj, "apiVersion")),
        text(obj, "kind"),
        text(obj, "metadata", "namespace"),
        text(obj, "metadata", "name"),
    )


def uid_of(obj: Mapping[str, Any], life: int = 0) -> str:
    """Compute an object's uid as `crossplane composition render` does; `life` counts earlier objects of its name."""
    group, _, version = text(obj, "apiVersion").rpartition("/")
    kind = f"{group}/{version}, Kind={text(obj, 'kind')}"
    parts = [kind, text(obj, "metadata", "namespace"), text(obj, "metadata", "name")]
    if life:
        parts.append(str(life))
    return str(uuid.uuid5(uuid.UUID(int=0), "\0".join(parts)))


def controller_of(obj: Mapping[str, Any]) -> str:
    """Uid of an object's controller, empty where there is none."""
    return next(
        (text(ref, "uid") for ref in objects(obj, "metadata", "ownerReferences") if ref.get("controller") is True), ""
    )


class Store:
    """Objects by identity. What it hands out is shared: callers replace objects through it, never change them.

    `now` answers Unix seconds and is the only clock.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._objects: dict[Key, Object] = {}
        self._kinds: dict[tuple[str, str], dict[Key, None]] = {}
        self._dependents: dict[str, dict[Key, None]] = {}
        self._lives: dict[Key, int] = {}
        self._replay: dict[Key, str] = {}
        self.version = 0
        self.versions: dict[tuple[str, str], int] = {}
        self.deletions: list[Deletion] = []
        self.refusals: list[Deletion] = []

    def time(self) -> str:
        """The current time in RFC 3339."""
        return datetime.fromtimestamp(self._now(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def __iter__(self) -> Iterator[Object]:
        """Every object, by group, kind, namespace and name."""
        for key in sorted(self._objects):
            yield self._objects[key]

    def __len__(self) -> int:
        return len(self._objects)

    def get(self, key: Key) -> Object | None:
        """One object, or None."""
        return self._objects.get(key)

    def find(self, api_version: str, kind: str, namespace: str, name: str) -> Object | None:
        """One object by reference, or None."""
        return self._objects.get(Key(group_of(api_version), kind, namespace, name))

    def select(
        self, api_version: str, kind: str, *, namespace: str = "", labels: Mapping[str, str] | None = None
    ) -> list[Object]:
        """Objects of a kind by namespace and name; an empty namespace means all of them."""
        found = []
        for key in sorted(self._kinds.get((group_of(api_version), kind), ())):
            obj = self._objects[key]
            if namespace and key.namespace != namespace:
                continue
            if labels:
                have = mapping(obj, "metadata", "labels")
                if any(have.get(k) != v for k, v in labels.items()):
                    continue
            found.append(obj)
        return found

    def kinds(self) -> list[tuple[str, str]]:
        """Groups and kinds that have objects."""
        return sorted(kind for kind, keys in self._kinds.items() if keys)

    def put(self, obj: Object) -> Object:
        """Create an object, or replace it as a whole; answers what is stored, which is the old one if nothing changed.

        The server's own metadata is added or kept; `generation` counts changes outside metadata and status.
        """
        key = key_of(obj)
        old = self._objects.get(key)
        stored = dict(obj)
        meta = dict(obj.get("metadata") or {})
        stored["metadata"] = meta
        if old is None:
            meta["uid"] = text(meta, "uid") or uid_of(obj, self._lives.get(key, 0))
            meta.setdefault("creationTimestamp", self.time())
            meta.setdefault("generation", 1)
        else:
            before = old["metadata"]
            for field in ("uid", "creationTimestamp", "generation", "resourceVersion", "deletionTimestamp"):
                if field in before:
                    meta[field] = before[field]
            if stored == old:
                return old
            if any(stored.get(f) != old.get(f) for f in (stored.keys() | old.keys()) - _BARE):
                meta["generation"] = int(before.get("generation", 1)) + 1
        self._write(key, stored, old)
        if meta.get("deletionTimestamp") and not meta.get("finalizers"):
            self._remove(key)
        return stored

    def set_status(self, key: Key, status: Mapping[str, Any]) -> bool:
        """Replace an object's status; answers whether that changed anything."""
        old = self._objects.get(key)
        if old is None or old.get("status", {}) == status:
            return False
        self.put({**old, "status": dict(status)})
        return True

    def set_finalizers(self, key: Key, finalizers: list[str]) -> None:
        """Replace an object's finalizers; one that is being deleted goes with its last."""
        old = self._objects.get(key)
        if old is None or list(items(old, "metadata", "finalizers")) == finalizers:
            return
        meta = {**old["metadata"], "finalizers": finalizers}
        if not finalizers:
            del meta["finalizers"]
        self.put({**old, "metadata": meta})

    def _write(self, key: Key, stored: Object, old: Object | None) -> None:
        self.version += 1
        stored["metadata"]["resourceVersion"] = str(self.version)
        self._objects[key] = stored
        kind = (key.group, key.kind)
        self.versions[kind] = self.version
        self._kinds.setdefault(kind, {})[key] = None
        if old is not None:
            self._unlink(key, old)
        for ref in objects(stored, "metadata", "ownerReferences"):
            self._dependents.setdefault(text(ref, "uid"), {})[key] = None

    def _unlink(self, key: Key, old: Object) -> None:
        for ref in objects(old, "metadata", "ownerReferences"):
            self._dependents.get(text(ref, "uid"), {}).pop(key, None)

    def _remove(self, key: Key) -> None:
        old = self._objects.pop(key)
        self._unlink(key, old)
        self._kinds[key.group, key.kind].pop(key, None)
        self._lives[key] = self._lives.get(key, 0) + 1
        self._replay.pop(key, None)
        self.version += 1
        self.versions[key.group, key.kind] = self.version

    def delete(self, key: Key, *, by: str, why: str = "", foreground: bool = False) -> bool:
        """Ask for an object's deletion; answers whether it was there.

        Raises ProtectedError where a Usage or ClusterUsage forbids it; one with replayDeletion remembers the request.
        """
        obj = self._objects.get(key)
        if obj is None:
            return False
        if text(obj, "metadata", "deletionTimestamp"):
            return True
        guard = self.guard(obj)
        if guard is not None:
            reason = text(guard, "spec", "reason") or f"used by {_end(guard)}"
            if mapping(guard, "spec").get("replayDeletion") is True:
                self._replay[key] = by
            self.refusals.append(Deletion(key, by, f"{key_of(guard)}: {reason}"))
            raise ProtectedError(f"{key} is protected by {key_of(guard)}: {reason}")
        self.deletions.append(Deletion(key, by, why))
        self._start(key, foreground=foreground)
        return True

    def _start(self, key: Key, *, foreground: bool) -> None:
        obj = self._objects[key]
        finalizers = list(items(obj, "metadata", "finalizers"))
        if foreground and FOREGROUND not in finalizers:
            finalizers.append(FOREGROUND)
        if not finalizers:
            self._remove(key)
            return
        meta = {**obj["metadata"], "finalizers": finalizers, "deletionTimestamp": self.time()}
        self._write(key, {**obj, "metadata": meta}, obj)

    def guard(self, obj: Object) -> Object | None:
        """The Usage or ClusterUsage that forbids the deletion of an object, if one does."""
        key = key_of(obj)
        kind = "Usage" if key.namespace else "ClusterUsage"
        for usage in self.select(PROTECTION_GROUP + "/v1beta1", kind, namespace=key.namespace):
            if key_of(usage) != key and self._matches(usage, "of", obj):
                return usage
        return None

    def _matches(self, usage: Object, end: str, obj: Object) -> bool:
        want = mapping(usage, "spec", end)
        if (group_of(text(want, "apiVersion")), text(want, "kind")) != key_of(obj)[:2]:
            return False
        if "resourceRef" in want:
            return text(want, "resourceRef", "name") == text(obj, "metadata", "name")
        selector = mapping(want, "resourceSelector")
        if selector.get("matchControllerRef") is True and controller_of(obj) != controller_of(usage):
            return False
        have = strings(obj, "metadata", "labels")
        return all(have.get(k) == v for k, v in strings(selector, "matchLabels").items())

    def collect(self) -> bool:
        """Run the garbage collector and the Usage controller once; answers whether anything changed."""
        before = self.version
        for key in sorted(self._kinds.get((PROTECTION_GROUP, "Usage"), ())):
            self._tend_usage(self._objects[key])
        for key, by in sorted(self._replay.items()):
            obj = self._objects.get(key)
            if obj is not None and self.guard(obj) is None:
                del self._replay[key]
                self.delete(key, by=by, why="replayed", foreground=True)
        live = {text(obj, "metadata", "uid") for obj in self._objects.values()}
        for key in sorted(self._objects):
            if key in self._objects:
                self._tend(key, live)
        return self.version != before

    def _tend_usage(self, usage: Object) -> None:
        """Hold a Usage that is being deleted until what uses the resource is gone."""
        key = key_of(usage)
        finalizers = list(items(usage, "metadata", "finalizers"))
        if not text(usage, "metadata", "deletionTimestamp"):
            if USAGE_FINALIZER not in finalizers:
                self.set_finalizers(key, [*finalizers, USAGE_FINALIZER])
        elif USAGE_FINALIZER in finalizers and not self._is_used(usage):
            self.set_finalizers(key, [f for f in finalizers if f != USAGE_FINALIZER])

    def _is_used(self, usage: Object) -> bool:
        """Whether what a Usage names as its user exists."""
        by = mapping(usage, "spec", "by")
        if not by:
            return False
        api_version, kind, namespace = text(by, "apiVersion"), text(by, "kind"), text(usage, "metadata", "namespace")
        if "resourceRef" in by:
            return self.find(api_version, kind, namespace, text(by, "resourceRef", "name")) is not None
        return any(self._matches(usage, "by", obj) for obj in self.select(api_version, kind, namespace=namespace))

    def _tend(self, key: Key, live: set[str]) -> None:
        obj = self._objects[key]
        owners = [text(ref, "uid") for ref in objects(obj, "metadata", "ownerReferences")]
        finalizers = list(items(obj, "metadata", "finalizers"))
        if owners and not any(owner in live for owner in owners) and not text(obj, "metadata", "deletionTimestamp"):
            self._orphan(key, foreground=FOREGROUND in finalizers)
            return
        if not text(obj, "metadata", "deletionTimestamp") or FOREGROUND not in finalizers:
            return
        uid = text(obj, "metadata", "uid")
        blocking = [k for k in sorted(self._dependents.get(uid, ())) if self._blocks(k, uid)]
        for dependent in blocking:
            child = self._objects.get(dependent)
            if child is not None and not text(child, "metadata", "deletionTimestamp"):
                has_children = bool(self._dependents.get(text(child, "metadata", "uid")))
                self._orphan(dependent, foreground=has_children)
        if not any(self._blocks(k, uid) for k in self._dependents.get(uid, ())):
            self.set_finalizers(key, [f for f in finalizers if f != FOREGROUND])

    def _blocks(self, key: Key, uid: str) -> bool:
        refs = objects(self._objects[key], "metadata", "ownerReferences")
        return any(text(r, "uid") == uid and r.get("blockOwnerDeletion") is True for r in refs)

    def _orphan(self, key: Key, *, foreground: bool) -> None:
        try:
            self.delete(key, by="garbage collector", why="its owner is gone", foreground=foreground)
        except ProtectedError:
            self.refusals.pop()

    def snapshot(self) -> dict[Key, Object]:
        """Deep copy of every object, for comparison."""
        return {key: copy.deepcopy(self._objects[key]) for key in sorted(self._objects)}


def _end(usage: Object) -> str:
    by = mapping(usage, "spec", "by")
    return f"{text(by, 'kind')} {text(by, 'resourceRef', 'name')}".strip() if by else "something else"
