"""One reconcile of a composite, as Crossplane 2.3 does it.

Source: https://github.com/crossplane/crossplane/tree/v2.3.4/internal/controller/apiextensions/composite
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from modelplane.kube.objects import Condition, Object, items, mapping, objects, text
from modelplane.kube.problem import Problem
from modelplane.simulate import definitions
from modelplane.simulate.admission import Admission, RefusedError
from modelplane.simulate.apply import merge
from modelplane.simulate.definitions import Definition
from modelplane.simulate.store import Key, ProtectedError, Store, controller_of, group_of, key_of
from modelplane.xfn.caller import Answer, Caller, Result, Selector

COMPOSITE_LABEL = "crossplane.io/composite"
RESOURCE_ANNOTATION = "crossplane.io/composition-resource-name"
FINALIZER = "composite.apiextensions.crossplane.io"
CALLS_MAX = 6
"""A function is called again while its requirements change, and then it must have settled."""
NAME_MAX = 63
HASH_SIZE = 12
FIRST_N = 3
"""How many names a condition's message lists before it counts the others."""

SYSTEM_CONDITIONS = frozenset(
    {"Ready", "Synced", "Responsive", "Healthy", "Established", "Offered", "Installed", "ValidPipeline"}
)


class ReconcileError(Exception):
    """A reconcile ended early: nothing more was applied, custom conditions turned Unknown."""


@dataclass
class Pass:
    """What one reconcile did. `answer` is the last call's; `error` is empty for one that ended well."""

    key: Key
    answer: Answer | None = None
    error: str = ""
    calls: int = 0
    sent: int = 0
    received: int = 0
    deleted: list[Key] = field(default_factory=list)
    applied: int = 0
    events: list[Result] = field(default_factory=list)
    looked_at: dict[Selector, tuple[int, tuple[str, ...]]] = field(default_factory=dict)
    """What its requirements found: the version of the kind, and the resource versions of the objects."""
    saw: tuple[str, ...] = ()
    """Versions of the composite and of its composed resources, as the function was given them."""


class Crossplane:
    """Reconciles composites of one store through one caller."""

    def __init__(self, store: Store, admission: Admission, caller: Caller) -> None:
        self.store = store
        self.admission = admission
        self.caller = caller
        self.history: dict[Key, list[Result]] = {}
        """Events per composite, each once."""
        self._wanted: dict[tuple[Key, str], Object] = {}

    def composites(self) -> list[Key]:
        """Every composite in the store, in the order in which they are reconciled."""
        found: list[Key] = []
        for group, kind in sorted(definitions.load()):
            definition = definitions.load()[group, kind]
            found += [key_of(obj) for obj in self.store.select(definition.api_version, kind)]
        return found

    def reconcile(self, key: Key) -> Pass:
        """Reconcile one composite.

        Raises KeyError where there is none, ConnectionError where its function cannot be called.
        """
        xr = self.store.get(key)
        definition = definitions.load().get((key.group, key.kind))
        if xr is None or definition is None:
            raise KeyError(str(key))
        done = Pass(key)
        if text(xr, "metadata", "deletionTimestamp"):
            finalizers = [f for f in items(xr, "metadata", "finalizers") if f != FINALIZER]
            self.store.set_finalizers(key, finalizers)
            return done
        xr = self._initialize(xr)
        observed = self.observe(xr)
        done.saw = versions(xr, observed)
        try:
            answer = self._call(definition, xr, observed, done)
        except ReconcileError as error:
            return self._fail(key, done, str(error), ())
        done.answer = answer
        done.events += [r for r in answer.results if r.severity != "Fatal"]
        if answer.fatal:
            message = f"pipeline step {definition.step!r} returned a fatal result: {answer.fatal}"
            return self._fail(key, done, message.replace("'", '"'), tuple(answer.conditions.values()))
        try:
            unsynced = self._apply(definition, xr, observed, answer, done)
            self._write_status(definition, key, answer, unsynced)
        except ReconcileError as error:
            return self._fail(key, done, str(error), ())
        self._record(key, done)
        return done

    def _initialize(self, xr: Object) -> Object:
        meta = dict(xr["metadata"])
        name = text(meta, "name")
        labels = dict(mapping(meta, "labels"))
        labels.setdefault(COMPOSITE_LABEL, name)
        finalizers = list(items(meta, "finalizers"))
        if FINALIZER not in finalizers:
            finalizers.append(FINALIZER)
        return self.store.put({**xr, "metadata": {**meta, "labels": labels, "finalizers": finalizers}})

    def observe(self, xr: Object) -> dict[str, Object]:
        """Composed resources of a composite by composition key: those it references, and that say which they are."""
        found: dict[str, Object] = {}
        uid = text(xr, "metadata", "uid")
        for ref in objects(xr, "spec", "crossplane", "resourceRefs"):
            namespace = text(ref, "namespace") or text(xr, "metadata", "namespace")
            obj = self.store.find(text(ref, "apiVersion"), text(ref, "kind"), namespace, text(ref, "name"))
            if obj is None or controller_of(obj) not in ("", uid):
                continue
            key = text(obj, "metadata", "annotations", RESOURCE_ANNOTATION)
            if key:
                found[key] = obj
        return found

    def _call(self, definition: Definition, xr: Object, observed: Mapping[str, Object], done: Pass) -> Answer:
        static = {name: self._look(s, done) for name, s in definition.requirements.items()}
        required = dict(static)
        last: Mapping[str, Selector] = {}
        for _ in range(CALLS_MAX):
            answer = self.caller.call(xr, observed, required)
            done.calls += 1
            done.sent += answer.sent
            done.received += answer.received
            if answer.fatal or answer.requirements == last:
                return answer
            last = answer.requirements
            required = {**static, **{name: self._look(s, done) for name, s in sorted(last.items())}}
        raise ReconcileError(f"requirements didn't stabilize after the maximum number of iterations ({CALLS_MAX - 1})")

    def is_stale(self, done: Pass) -> bool:
        """Whether anything a pass decided on has changed since, its own writes included."""
        xr = self.store.get(done.key)
        if xr is None:
            return False
        if versions(xr, self.observe(xr)) != done.saw:
            return True
        for selector, (version, found) in done.looked_at.items():
            if self._kind_version(selector) != version:
                if _versions(self.fetch(selector)) != found:
                    return True
                done.looked_at[selector] = (self._kind_version(selector), found)
        return False

    def _kind_version(self, selector: Selector) -> int:
        return self.store.versions.get((group_of(selector.api_version), selector.kind), 0)

    def _look(self, selector: Selector, done: Pass) -> Sequence[Object]:
        found = self.fetch(selector)
        done.looked_at[selector] = (self._kind_version(selector), _versions(found))
        return found

    def fetch(self, selector: Selector) -> Sequence[Object]:
        """Objects that answer a requirement."""
        if selector.match_name:
            found = self.store.find(selector.api_version, selector.kind, selector.namespace, selector.match_name)
            return [found] if found is not None else []
        return self.store.select(
            selector.api_version, selector.kind, namespace=selector.namespace, labels=dict(selector.match_labels)
        )

    def render(
        self, definition: Definition, xr: Object, observed: Mapping[str, Object], answer: Answer
    ) -> list[Object]:
        """Desired composed resources with the metadata that Crossplane gives them, by composition key.

        Raises ReconcileError for what a composite of its scope cannot compose.
        """
        name = text(xr, "metadata", "name")
        namespace = text(xr, "metadata", "namespace")
        uid = text(xr, "metadata", "uid")
        owner: Object = {
            "apiVersion": text(xr, "apiVersion"),
            "kind": text(xr, "kind"),
            "name": name,
            "uid": uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
        rendered = []
        for key, wanted in answer.desired.items():
            meta = dict(mapping(wanted, "metadata"))
            kind = text(wanted, "kind")
            scoped = definitions.is_namespaced(group_of(text(wanted, "apiVersion")), kind)
            if key in observed:
                meta["name"] = text(observed[key], "metadata", "name")
                meta["namespace"] = text(observed[key], "metadata", "namespace")
            if definition.namespaced and not scoped:
                raise ReconcileError(
                    f"cannot apply cluster scoped composed resource {key!r} (a {kind} named "
                    f"{text(meta, 'name')}) for a namespaced composite resource"
                )
            if namespace:
                meta["namespace"] = namespace
            elif scoped and not text(meta, "namespace"):
                raise ReconcileError(f"cannot apply composed resource {key!r}: a {kind} needs a namespace")
            if not text(meta, "namespace"):
                meta.pop("namespace", None)
            if not text(meta, "name"):
                meta.setdefault("generateName", name + "-")
                meta["name"] = child_name(text(meta, "generateName"), uid, key)
            meta["annotations"] = {**mapping(meta, "annotations"), RESOURCE_ANNOTATION: key}
            prefix = text(xr, "metadata", "labels", COMPOSITE_LABEL) or name
            meta["labels"] = {**mapping(meta, "labels"), COMPOSITE_LABEL: prefix}
            meta["ownerReferences"] = [owner]
            rendered.append({**wanted, "metadata": meta})
        return rendered

    def _apply(
        self, definition: Definition, xr: Object, observed: Mapping[str, Object], answer: Answer, done: Pass
    ) -> list[str]:
        rendered = self.render(definition, xr, observed, answer)
        for key in sorted(set(observed) - set(answer.desired)):
            self._collect(observed[key], xr, done)
        self._write_refs(xr, rendered)
        unsynced = []
        for wanted in rendered:
            try:
                self._apply_one(wanted, xr, done)
            except RefusedError as refused:
                key = text(wanted, "metadata", "annotations", RESOURCE_ANNOTATION)
                unsynced.append(key)
                done.events.append(Result("Warning", f'cannot apply composed resource "{key}": {refused}'))
        return unsynced

    def _collect(self, obj: Object, xr: Object, done: Pass) -> None:
        key = key_of(obj)
        labels = {k: v for k, v in mapping(obj, "metadata", "labels").items() if k != COMPOSITE_LABEL}
        self.store.put({**obj, "metadata": {**obj["metadata"], "labels": labels}})
        try:
            self.store.delete(key, by=str(key_of(xr)), why="left desired state", foreground=True)
        except ProtectedError as error:
            raise ReconcileError(f"cannot garbage collect composed resource: {error}") from error
        done.deleted.append(key)
        self._wanted.pop((key, text(xr, "metadata", "uid")), None)

    def _write_refs(self, xr: Object, rendered: Sequence[Object]) -> None:
        clustered = not text(xr, "metadata", "namespace")
        refs = []
        for obj in rendered:
            ref = {"apiVersion": text(obj, "apiVersion"), "kind": text(obj, "kind")}
            ref["name"] = text(obj, "metadata", "name")
            if clustered and text(obj, "metadata", "namespace"):
                ref["namespace"] = text(obj, "metadata", "namespace")
            refs.append(ref)
        refs.sort(key=lambda r: r["apiVersion"] + r["kind"] + r["name"] + r.get("namespace", ""))
        current = self.store.get(key_of(xr)) or xr
        machinery = {k: v for k, v in mapping(current, "spec", "crossplane").items() if k != "resourceRefs"}
        machinery["resourceRefs"] = refs
        if machinery != mapping(current, "spec", "crossplane"):
            self.store.put({**current, "spec": {**mapping(current, "spec"), "crossplane": machinery}})

    def _apply_one(self, wanted: Object, xr: Object, done: Pass) -> None:
        key = key_of(wanted)
        uid = text(xr, "metadata", "uid")
        stored = self.store.get(key)
        if stored is not None and controller_of(stored) not in ("", uid):
            raise ReconcileError(f"cannot apply {key}: it is already controlled by another composite")
        merged = merge(stored, wanted, self._wanted.get((key, uid)))
        merged = self.admission.admit(merged, stored)
        if self.store.put(merged) is not stored:
            done.applied += 1
        self._wanted[key, uid] = wanted

    def _write_status(self, definition: Definition, key: Key, answer: Answer, unsynced: list[str]) -> None:
        xr = self.store.get(key)
        if xr is None:
            return
        problems = self.admission.check_status(xr, answer.status)
        if problems:
            raise ReconcileError(f"cannot apply composite resource status: {_list(problems)}")
        synced = Condition("Synced", "True", "ReconcileSuccess")
        if unsynced:
            synced = Condition("Synced", "False", "ReconcileError", f"Unsynced resources: {_some(unsynced)}")
        unready = [k for k, ready in answer.readiness.items() if ready is not True]
        ready = Condition("Ready", "True", "Available")
        if unready:
            ready = Condition("Ready", "False", "Creating", f"Unready resources: {_some(unready)}")
        if answer.ready is not None:
            ready = Condition("Ready", "True", "Available") if answer.ready else Condition("Ready", "False", "Creating")
        custom = [c for c in answer.conditions.values() if c.type not in SYSTEM_CONDITIONS]
        conditions = self._conditions(xr, [_RESPONSIVE, *custom, synced, ready])
        self.store.set_status(key, {**answer.status, "conditions": conditions})

    def _fail(self, key: Key, done: Pass, message: str, given: tuple[Condition, ...]) -> Pass:
        done.error = f"cannot compose resources: {message}"
        xr = self.store.get(key)
        if xr is not None:
            seen = {c.type for c in given}
            lost = [
                Condition(text(c, "type"), "Unknown", "FatalError", _UNKNOWN_MESSAGE)
                for c in objects(xr, "status", "conditions")
                if text(c, "type") not in SYSTEM_CONDITIONS and text(c, "type") not in seen
            ]
            custom = [c for c in given if c.type not in SYSTEM_CONDITIONS]
            synced = Condition("Synced", "False", "ReconcileError", done.error)
            conditions = self._conditions(xr, [_RESPONSIVE, *custom, *lost, synced])
            self.store.set_status(key, {**mapping(xr, "status"), "conditions": conditions})
        done.events.append(Result("Warning", done.error))
        self._record(key, done)
        return done

    def _conditions(self, xr: Object, wanted: Sequence[Condition]) -> list[Object]:
        """Merge conditions into those a composite has; a time changes only with what it is the time of."""
        merged = {text(c, "type"): c for c in objects(xr, "status", "conditions")}
        generation = mapping(xr, "metadata").get("generation", 1)
        for condition in wanted:
            raw: Object = {"type": condition.type, "status": condition.status, "reason": condition.reason}
            if condition.message:
                raw["message"] = condition.message
            if condition.type in SYSTEM_CONDITIONS:
                raw["observedGeneration"] = generation
            old = dict(merged.get(condition.type) or {})
            since = old.pop("lastTransitionTime", None)
            raw["lastTransitionTime"] = since if since and old == raw else self.store.time()
            merged[condition.type] = raw
        return [dict(condition) for condition in merged.values()]

    def _record(self, key: Key, done: Pass) -> None:
        known = self.history.setdefault(key, [])
        known += [event for event in dict.fromkeys(done.events) if event not in known]


_RESPONSIVE = Condition("Responsive", "True", "WatchCircuitClosed")
_UNKNOWN_MESSAGE = "A fatal error occurred before the status of this condition could be determined."


def versions(xr: Object, observed: Mapping[str, Object]) -> tuple[str, ...]:
    """Resource versions of a composite and of what it composed, sorted by composition key."""
    return _versions([xr, *(observed[key] for key in sorted(observed))])


def _versions(found: Sequence[Object]) -> tuple[str, ...]:
    return tuple(text(obj, "metadata", "resourceVersion") for obj in found)


def child_name(prefix: str, uid: str, key: str) -> str:
    """Name that Crossplane generates: the prefix, and a hash of the composite's uid and the composition key.

    Source: https://github.com/crossplane/crossplane/blob/v2.3.4/internal/names/names.go
    """
    suffix = hashlib.sha256((uid + key).encode()).hexdigest()[:HASH_SIZE]
    if prefix and not prefix.endswith("-"):
        prefix += "-"
    room = NAME_MAX - HASH_SIZE
    if len(prefix) > room:
        prefix = prefix[:room] if prefix[:room].endswith("-") else prefix[: room - 1] + "-"
    return prefix + suffix


def _some(names: Sequence[str]) -> str:
    shown = sorted(names)[:FIRST_N]
    rest = len(names) - len(shown)
    if rest:
        return f"{', '.join(shown)}, and {rest} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)


def _list(problems: Sequence[Problem]) -> str:
    return "; ".join(f"{p.path}: {p.message}" for p in problems[:5])
