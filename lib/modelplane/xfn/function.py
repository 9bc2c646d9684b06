"""A composition function as a value."""

from collections.abc import Callable
from dataclasses import dataclass

from modelplane.xfn.request import Request
from modelplane.xfn.response import Response


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class Function:
    """One composition function.

    `conditions` are the condition types it owns on its composite; `compose` reads a request and writes a response, and
    raises nothing a user could cause. `prepare` does at start what would else make the first call slow.
    """

    name: str
    api_version: str
    kind: str
    conditions: tuple[str, ...]
    compose: Callable[[Request, Response], None]
    prepare: Callable[[], None] = _nothing
