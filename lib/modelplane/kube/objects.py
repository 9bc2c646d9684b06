"""Kubernetes objects as plain dictionaries, read leniently.

Another tenant's object, or one from another version of this package, may have any shape. Every accessor here answers
with an empty value of the type it promises rather than raise, so that a malformed object costs its owner a value and
nobody else anything.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

Object = dict[str, Any]


def dig(value: object, *path: str) -> Any:
    """Follow keys into nested mappings; None where the path ends early."""
    for key in path:
        # A plain dict, which nearly every value is, needs no slow look at its abstract base class.
        if value.__class__ is not dict and not isinstance(value, Mapping):
            return None
        value = value.get(key)  # type: ignore[attr-defined]
    return value


def text(value: object, *path: str) -> str:
    """Read a string at a path; empty where it is absent or not a string."""
    found = dig(value, *path)
    return found if isinstance(found, str) else ""


def integer(value: object, *path: str) -> int | None:
    """Read a whole number at a path; None where it is absent or anything else."""
    found = dig(value, *path)
    if isinstance(found, bool):
        return None
    if isinstance(found, int):
        return found
    if isinstance(found, float) and found.is_integer():
        return int(found)
    return None


def mapping(value: object, *path: str) -> Mapping[str, Any]:
    """Read a mapping at a path; empty where it is absent or anything else."""
    found = dig(value, *path)
    return found if found.__class__ is dict or isinstance(found, Mapping) else {}


def items(value: object, *path: str) -> Sequence[Any]:
    """Read a list at a path; empty where it is absent or anything else."""
    found = dig(value, *path)
    return found if isinstance(found, (list, tuple)) else ()


def objects(value: object, *path: str) -> Sequence[Mapping[str, Any]]:
    """Read a list of mappings at a path, leaving out elements that are not mappings."""
    return [item for item in items(value, *path) if item.__class__ is dict or isinstance(item, Mapping)]


def strings(value: object, *path: str) -> dict[str, str]:
    """Read a mapping of strings at a path, such as labels, leaving out entries that are not strings."""
    return {k: v for k, v in mapping(value, *path).items() if isinstance(k, str) and isinstance(v, str)}


@dataclass(frozen=True)
class Condition:
    """One entry of `status.conditions`.

    `status` is "True", "False" or "Unknown"; `since` is lastTransitionTime as written (RFC 3339), or empty.
    """

    type: str
    status: str
    reason: str = ""
    message: str = ""
    since: str = ""
    observed_generation: int | None = None


class Resource:
    """One Kubernetes object, converted from the wire when it is first looked at, and no more of it than is looked at.

    `part` converts what is at a path; without it the whole object is converted at once.
    """

    def __init__(self, load: Callable[[], Object], part: Callable[[tuple[str, ...]], Any] | None = None) -> None:
        self._load = load
        self._part = part
        self._parts: dict[tuple[str, ...], Any] = {}

    @classmethod
    def of(cls, raw: Object) -> "Resource":
        """Wrap an object that is already a dictionary."""
        return cls(lambda: raw)

    @cached_property
    def raw(self) -> Object:
        """The object as a dictionary; shared, so not to be changed."""
        return self._load()

    def dig(self, *path: str) -> Any:
        """Follow keys from the object's root; shared, so not to be changed."""
        if self._part is None or "raw" in self.__dict__:
            return dig(self.raw, *path)
        if path not in self._parts:
            self._parts[path] = self._part(path)
        return self._parts[path]

    @property
    def api_version(self) -> str:
        """`apiVersion`."""
        return self.text("apiVersion")

    @property
    def kind(self) -> str:
        """`kind`."""
        return self.text("kind")

    @property
    def name(self) -> str:
        """`metadata.name`."""
        return self.text("metadata", "name")

    @property
    def namespace(self) -> str:
        """`metadata.namespace`, empty for a cluster-scoped object."""
        return self.text("metadata", "namespace")

    @property
    def uid(self) -> str:
        """`metadata.uid`; empty in offline rendering."""
        return self.text("metadata", "uid")

    @property
    def generation(self) -> int:
        """`metadata.generation`, 0 where absent."""
        return integer(self.dig("metadata", "generation")) or 0

    @cached_property
    def labels(self) -> dict[str, str]:
        """`metadata.labels`."""
        return strings(self.dig("metadata", "labels"))

    @cached_property
    def annotations(self) -> dict[str, str]:
        """`metadata.annotations`."""
        return strings(self.dig("metadata", "annotations"))

    @property
    def deleting(self) -> bool:
        """Whether the object has a deletionTimestamp."""
        return bool(self.text("metadata", "deletionTimestamp"))

    @property
    def created(self) -> str:
        """`metadata.creationTimestamp` as written, empty where absent."""
        return self.text("metadata", "creationTimestamp")

    @property
    def spec(self) -> Mapping[str, Any]:
        """`spec`."""
        return mapping(self.dig("spec"))

    @property
    def status(self) -> Mapping[str, Any]:
        """`status`."""
        return mapping(self.dig("status"))

    def text(self, *path: str) -> str:
        """Read a string from the object's root."""
        return text(self.dig(*path))

    @cached_property
    def conditions(self) -> dict[str, Condition]:
        """`status.conditions` by type."""
        found: dict[str, Condition] = {}
        for raw in objects(self.dig("status", "conditions")):
            kind = text(raw, "type")
            if kind:
                found[kind] = Condition(
                    type=kind,
                    status=text(raw, "status") or "Unknown",
                    reason=text(raw, "reason"),
                    message=text(raw, "message"),
                    since=text(raw, "lastTransitionTime"),
                    observed_generation=integer(raw, "observedGeneration"),
                )
        return found

    def is_true(self, condition: str) -> bool:
        """Whether a condition is True."""
        found = self.conditions.get(condition)
        return found is not None and found.status == "True"

    @property
    def ready(self) -> bool:
        """Whether condition Ready is True."""
        return self.is_true("Ready")

    @property
    def good(self) -> bool:
        """Whether the object is Ready and Synced, both for its current generation where they say which.

        provider-kubernetes leaves Ready=True when it can no longer reach a cluster and only turns Synced to False, so
        Ready alone is not enough to call a remote object good.
        """
        for kind in ("Ready", "Synced"):
            found = self.conditions.get(kind)
            if found is None or found.status != "True":
                return False
            if found.observed_generation is not None and found.observed_generation < self.generation:
                return False
        return True
