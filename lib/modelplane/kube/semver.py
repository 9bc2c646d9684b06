"""Semantic versions as Kubernetes reads them: strict semver 2.0.0, each number below 2^64.

Rules: https://semver.org and https://github.com/kubernetes/apiserver/blob/v0.36.2/pkg/cel/library/semverlib.go
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, total_ordering
from typing import Any

_NUMBER = r"0|[1-9][0-9]{0,19}"
_STRICT = re.compile(
    rf"(?P<major>{_NUMBER})\.(?P<minor>{_NUMBER})\.(?P<patch>{_NUMBER})"
    r"(?:-(?P<pre>[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?"
    r"(?:\+(?P<build>[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?",
    re.ASCII,
)
_LIMIT = 2**64

ACCEPTED = "a semantic version such as 9.0.0"


class SemverError(ValueError):
    """A text that is not a semantic version."""


@total_ordering
@dataclass(frozen=True, eq=False)
class Semver:
    """Three numbers and pre-release identifiers; build metadata is checked and dropped, it orders nothing."""

    major: int
    minor: int
    patch: int
    pre: tuple[int | str, ...] = ()

    @classmethod
    def parse(cls, text: str, *, normalize: bool = False) -> Semver:
        """Read a version; `normalize` drops one "v", leading zeros, and pads to three parts. Raises SemverError."""
        shape = _STRICT.fullmatch(_normalized(text) if normalize else text)
        if shape is None:
            raise SemverError(f"{text!r} is not {ACCEPTED}")
        numbers = [int(shape[part]) for part in ("major", "minor", "patch")]
        pre: list[int | str] = []
        for identifier in shape["pre"].split(".") if shape["pre"] else ():
            if not identifier.isdigit():
                pre.append(identifier)
                continue
            if (identifier[0] == "0" and len(identifier) > 1) or len(identifier) > 20:
                raise SemverError(f"{text!r} is not {ACCEPTED}: bad pre-release number {identifier!r}")
            pre.append(int(identifier))
        if any(number >= _LIMIT for number in (*numbers, *(p for p in pre if isinstance(p, int)))):
            raise SemverError(f"{text!r} is not {ACCEPTED}: a number exceeds 64 bits")
        return cls(numbers[0], numbers[1], numbers[2], tuple(pre))

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        # A release is greater than its pre-releases; a number is less than a word.
        pre = tuple((0, p, "") if isinstance(p, int) else (1, 0, p) for p in self.pre)
        return (self.major, self.minor, self.patch, not pre, pre)

    def compare(self, other: Semver) -> int:
        """-1, 0 or 1 as this version precedes, equals or follows the other."""
        return (self._key > other._key) - (self._key < other._key)

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if isinstance(other, Semver) else NotImplemented

    def __lt__(self, other: Semver) -> bool:
        return self._key < other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __str__(self) -> str:
        release = f"{self.major}.{self.minor}.{self.patch}"
        return release + ("-" + ".".join(map(str, self.pre)) if self.pre else "")


def _normalized(text: str) -> str:
    parts = text.removeprefix("v").split(".", 2)
    for index, part in enumerate(parts):
        if len(part) > 1:
            stripped = part.lstrip("0")
            parts[index] = stripped if stripped[:1] in set("0123456789") else "0" + stripped
    if len(parts) < 3:
        if "+" in parts[-1] or "-" in parts[-1]:
            raise SemverError(f"{text!r}: a shortened version cannot have a pre-release or build part")
        parts += ["0"] * (3 - len(parts))
    return ".".join(parts)
