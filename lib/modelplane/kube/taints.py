"""Taints and tolerations, compared exactly as Kubernetes compares them.

Rules: https://github.com/kubernetes/api/blob/v0.36.2/core/v1/toleration.go
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

NO_SCHEDULE = "NoSchedule"
NO_EXECUTE = "NoExecute"


@dataclass(frozen=True, order=True, slots=True)
class Taint:
    """A mark that keeps away what does not tolerate it. `effect` is NoSchedule or NoExecute."""

    key: str
    value: str = ""
    effect: str = NO_SCHEDULE

    @classmethod
    def read(cls, raw: object) -> Taint | None:
        """A taint from its JSON form, or None if that is not one (no key, or a value of the wrong type)."""
        texts = _texts(raw, ("key", "value", "effect"))
        if texts is None or not texts["key"]:
            return None
        return cls(texts["key"], texts["value"], texts["effect"] or NO_SCHEDULE)

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


@dataclass(frozen=True, order=True, slots=True)
class Toleration:
    """What a taint is tolerated by. Empty key with Exists: every key; empty effect: every effect."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""

    @classmethod
    def read(cls, raw: object) -> Toleration | None:
        """A toleration from its JSON form, or None if that is not one (a value of the wrong type)."""
        texts = _texts(raw, ("key", "operator", "value", "effect"))
        return None if texts is None else cls(**texts)

    def tolerates(self, taint: Taint) -> bool:
        """Whether this toleration tolerates the taint."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator in ("", "Equal"):
            return self.value == taint.value
        return self.operator == "Exists"


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Whether any of the tolerations tolerates the taint."""
    return any(toleration.tolerates(taint) for toleration in tolerations)


def untolerated(tolerations: Iterable[Toleration], taints: Iterable[Taint], effect: str | None = None) -> list[Taint]:
    """The taints, of the given effect or of any, that no toleration tolerates, in the order given."""
    known = tuple(tolerations)
    return [t for t in taints if (effect is None or t.effect == effect) and not tolerates(known, t)]


def _texts(raw: object, keys: tuple[str, ...]) -> dict[str, str] | None:
    if not isinstance(raw, Mapping):
        return None
    found: dict[str, str] = {}
    for key in keys:
        value = raw.get(key)
        if value is None:
            value = ""
        if not isinstance(value, str):
            return None
        found[key] = value
    return found
