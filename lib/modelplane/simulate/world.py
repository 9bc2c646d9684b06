"""A whole control plane: apply manifests, run rounds until nothing changes, look at what there is."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from modelplane.kube.objects import Object, mapping
from modelplane.simulate import definitions
from modelplane.simulate.admission import Admission
from modelplane.simulate.crossplane import Crossplane, Pass
from modelplane.simulate.providers import Providers
from modelplane.simulate.store import Deletion, Key, Store, key_of
from modelplane.xfn.caller import Answer, Caller, Result

EPOCH = 1_767_225_600.0
"""2026-01-01T00:00:00Z: the time of a plan, fixed so that the same manifests make the same plan."""
ROUNDS_MAX = 100

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Progress = Callable[[int, int, int], None]
"""Called with the round, composites reconciled so far in it, and composites to reconcile in it."""


class UnsettledError(Exception):
    """Rounds kept changing something; the message names what."""


@dataclass
class Settled:
    """What it took until nothing changed any more; sizes are in bytes."""

    rounds: int = 0
    passes: int = 0
    calls: int = 0
    sent: int = 0
    received: int = 0
    errors: dict[Key, str] = field(default_factory=dict)

    def then(self, after: "Settled") -> "Settled":
        """What two settlings one after the other took."""
        return Settled(
            rounds=self.rounds + after.rounds,
            passes=self.passes + after.passes,
            calls=self.calls + after.calls,
            sent=self.sent + after.sent,
            received=self.received + after.received,
            errors=after.errors,
        )


class World:
    """A control plane around one caller. `clock` is Unix seconds; `advance` moves it."""

    def __init__(self, caller: Caller, *, clock: float = EPOCH) -> None:
        self.clock = clock
        self.store = Store(lambda: self.clock)
        self.admission = Admission()
        self.crossplane = Crossplane(self.store, self.admission, caller.remembering())
        self.providers = Providers(self.store)
        self.last: dict[Key, Pass] = {}
        """The last pass of every composite."""

    def advance(self, seconds: float) -> None:
        """Let time pass; every composite is due again."""
        self.clock += seconds
        self.last.clear()

    def apply(self, source: str | Path | Object | Iterable[Object]) -> list[Object]:
        """Apply manifests as `kubectl apply` does: YAML text, a file, a folder, an object or several.

        Raises RefusedError for what an API server would refuse; nothing of it is stored then.
        """
        return [self._apply_one(obj) for obj in _load(source)]

    def _apply_one(self, obj: Object) -> Object:
        key = key_of(obj)
        stored = self.store.get(key)
        wanted = {k: v for k, v in obj.items() if k != "status" or stored is None}
        if stored is not None:
            wanted = self._kept(stored, wanted)
        return self.store.put(self.admission.admit(wanted, stored))

    def _kept(self, stored: Object, wanted: Object) -> Object:
        """Keep of a stored object what its manifest does not say: status, finalizers, owners, machinery."""
        meta = {**mapping(wanted, "metadata")}
        for name in ("finalizers", "ownerReferences"):
            if name in stored["metadata"]:
                meta.setdefault(name, stored["metadata"][name])
        labels = {k: v for k, v in mapping(stored, "metadata", "labels").items() if "crossplane.io/" in k}
        if labels or "labels" in meta:
            meta["labels"] = {**labels, **mapping(meta, "labels")}
        kept = {**wanted, "metadata": meta}
        if "status" in stored:
            kept["status"] = stored["status"]
        machinery = mapping(stored, "spec").get("crossplane")
        if machinery is not None:
            kept["spec"] = {"crossplane": machinery, **mapping(wanted, "spec")}
        return kept

    def restore(self, objects: Iterable[Object]) -> None:
        """Take objects as a live cluster has them, status, uids and all; nothing is judged."""
        for obj in objects:
            self.store.put(obj)

    def patch(self, kind: str, name: str, namespace: str = "", **fields: Any) -> Object:
        """Replace top-level fields of a stored object, such as `spec` or `status`, without admission."""
        key = self.key(kind, name, namespace)
        stored = self.store.get(key)
        if stored is None:
            raise KeyError(str(key))
        return self.store.put({**stored, **fields})

    def delete(self, kind: str, name: str, namespace: str = "", *, foreground: bool = False) -> None:
        """Delete an object as a user does.

        Raises ProtectedError where a Usage forbids it, KeyError where there is none.
        """
        key = self.key(kind, name, namespace)
        if not self.store.delete(key, by="user", foreground=foreground):
            raise KeyError(str(key))

    def key(self, kind: str, name: str, namespace: str = "") -> Key:
        """Identity of an object by kind alone: composites first, then whatever kind of that name is stored."""
        groups = [g for g, k in definitions.load() if k == kind] or [g for g, k in self.store.kinds() if k == kind]
        return Key(groups[0] if groups else "", kind, namespace, name)

    def get(self, kind: str, name: str, namespace: str = "") -> Object | None:
        """One object, or None."""
        return self.store.get(self.key(kind, name, namespace))

    def select(self, kind: str, namespace: str = "", labels: Mapping[str, str] | None = None) -> list[Object]:
        """Objects of a kind."""
        group = self.key(kind, "").group
        return self.store.select(f"{group}/v1" if group else "v1", kind, namespace=namespace, labels=labels)

    def composed(self, kind: str, name: str, namespace: str = "") -> dict[str, Object]:
        """What a composite composed, by composition key."""
        xr = self.get(kind, name, namespace)
        if xr is None:
            raise KeyError(str(self.key(kind, name, namespace)))
        return self.crossplane.observe(xr)

    @property
    def deleted(self) -> list[Deletion]:
        """Every deletion so far, by whom and why."""
        return self.store.deletions

    def events(self, kind: str, name: str, namespace: str = "") -> list[Result]:
        """Events of a composite, each once."""
        return self.crossplane.history.get(self.key(kind, name, namespace), [])

    def reconcile(self, kind: str, name: str, namespace: str = "") -> Answer:
        """Reconcile one composite once and answer what its function said last.

        Raises KeyError where there is none, RuntimeError where its requirements did not settle.
        """
        done = self._pass(self.key(kind, name, namespace))
        if done.answer is None:
            raise RuntimeError(done.error or f"{done.key} is being deleted; its function is not run")
        return done.answer

    def _pass(self, key: Key) -> Pass:
        done = self.crossplane.reconcile(key)
        self.last[key] = done
        return done

    def _is_due(self, key: Key) -> bool:
        last = self.last.get(key)
        return last is None or self.crossplane.is_stale(last)

    def settle(self, *, rounds: int = ROUNDS_MAX, progress: Progress | None = None) -> Settled:
        """Run rounds of Crossplane, providers and garbage collector until nothing changes.

        Raises UnsettledError after `rounds` of them.
        """
        result = Settled()
        while True:
            before = self.store.version
            result.rounds += 1
            waiting = [key for key in self.crossplane.composites() if self._is_due(key)]
            for index, key in enumerate(waiting):
                if progress is not None:
                    progress(result.rounds, index, len(waiting))
                if self.store.get(key) is None:
                    continue
                done = self._pass(key)
                result.passes += 1
                result.calls += done.calls
                result.sent += done.sent
                result.received += done.received
            self.providers.tend()
            self.store.collect()
            if self.store.version == before:
                break
            if result.rounds >= rounds:
                keys = ", ".join(str(k) for k in waiting[:5])
                raise UnsettledError(f"still changing after {rounds} rounds: {keys}")
        result.errors = {k: p.error for k, p in sorted(self.last.items()) if p.error and self.store.get(k)}
        return result


def _load(source: str | Path | Object | Iterable[Object]) -> list[Object]:
    if isinstance(source, Path):
        files = sorted(source.rglob("*.yaml")) if source.is_dir() else [source]
        return [obj for file in files for obj in _load(file.read_text())]
    if isinstance(source, str):
        return [obj for obj in yaml.load_all(source, Loader=_LOADER) if obj]
    if isinstance(source, dict):
        return [source]
    return [dict(obj) for obj in source]  # type: ignore[arg-type]
