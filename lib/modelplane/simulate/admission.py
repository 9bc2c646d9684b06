"""What an API server does to a composite before it stores it: defaults, schema, CEL rules.

Kinds that are not ours are only checked for what every object needs; tests validate what is composed against
schemas/crds.
"""

import json
from collections import OrderedDict

from modelplane.kube import rules, schema
from modelplane.kube.objects import Object, mapping, text
from modelplane.kube.problem import Problem
from modelplane.simulate import definitions
from modelplane.simulate.definitions import Definition
from modelplane.simulate.store import Key, group_of, key_of

CACHE_SIZE = 20_000


class RefusedError(Exception):
    """An object that an API server would refuse; `problems` say where and what is accepted."""

    def __init__(self, key: Key, problems: list[Problem]) -> None:
        self.key = key
        self.problems = problems
        lines = "; ".join(f"{p.path}: {p.message}" for p in problems[:10])
        more = f" (and {len(problems) - 10} more)" if len(problems) > 10 else ""
        super().__init__(f"{key} is refused: {lines}{more}")


class Admission:
    """Defaults and validates composites; remembers what it accepted, so that an unchanged spec is judged once."""

    def __init__(self) -> None:
        self._accepted: OrderedDict[str, None] = OrderedDict()

    def definition(self, obj: Object) -> Definition | None:
        """Definition of an object's kind, None where it is not ours."""
        return definitions.load().get((group_of(text(obj, "apiVersion")), text(obj, "kind")))

    def admit(self, obj: Object, old: Object | None = None) -> Object:
        """Return an object as it would be stored.

        Raises RefusedError. `old` is what is stored now; rules about changes read it.
        """
        definition = self.definition(obj)
        problems = list(_shape(obj, definition))
        if problems or definition is None:
            if problems:
                raise RefusedError(key_of(obj), problems)
            return obj
        tree = definition.schema
        if old is not None and old.get("status") is not None:
            obj = {**obj, "status": old["status"]}
        full: Object = schema.apply_defaults(tree, obj)
        judged = {k: v for k, v in full.items() if k != "status"}
        before = None if old is None else {k: v for k, v in old.items() if k != "status"}
        mark = json.dumps([_judged(judged), before and _judged(before)], sort_keys=True, default=str)
        if mark not in self._accepted:
            problems = schema.validate(tree, judged)
            if not problems:
                problems = rules.check(tree, judged, before).problems
            if problems:
                raise RefusedError(key_of(obj), problems)
            self._accepted[mark] = None
            if len(self._accepted) > CACHE_SIZE:
                self._accepted.popitem(last=False)
        return full

    def check_status(self, obj: Object, status: Object) -> list[Problem]:
        """List what is wrong with a status that a function wants; unknown fields are wrong too."""
        definition = self.definition(obj)
        if definition is None:
            return []
        tree = mapping(definition.schema, "properties", "status")
        return schema.validate_value(tree, status, "status")


def _judged(obj: Object) -> Object:
    """Drop from an object what no rule reads and every write changes."""
    meta = {k: v for k, v in mapping(obj, "metadata").items() if k in ("name", "namespace", "labels", "annotations")}
    spec = {k: v for k, v in mapping(obj, "spec").items() if k != "crossplane"}
    return {"apiVersion": obj.get("apiVersion"), "kind": obj.get("kind"), "metadata": meta, "spec": spec}


def _shape(obj: Object, definition: Definition | None) -> list[Problem]:
    problems = []
    if not text(obj, "kind"):
        problems.append(Problem("kind", "is required"))
    if not text(obj, "apiVersion"):
        problems.append(Problem("apiVersion", "is required"))
    name, namespace = text(obj, "metadata", "name"), text(obj, "metadata", "namespace")
    if not name:
        problems.append(Problem("metadata.name", "is required"))
    if definition is None:
        return problems
    if text(obj, "apiVersion") != definition.api_version:
        problems.append(Problem("apiVersion", f"must be {definition.api_version}; got {text(obj, 'apiVersion')}"))
    if definition.namespaced and not namespace:
        problems.append(Problem("metadata.namespace", f"is required: {definition.kind} is namespaced"))
    if not definition.namespaced and namespace:
        problems.append(
            Problem("metadata.namespace", f"must not be set: {definition.kind} is cluster-scoped; got {namespace}")
        )
    return problems
