"""What Crossplane observed, read as values."""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

from modelplane.kube.objects import Object, Resource
from modelplane.xfn import wire

T = TypeVar("T")

VIEWS_MAX_BYTES = 96 * 1024 * 1024
"""Objects of 5,000 clusters and 20,000 replicas: what is read once need not be read again."""


class _Views:
    """What readers made of objects, by the objects' canonical bytes; the longest unused go first.

    It holds no decision: a reader is a pure function of the object, so a hit and a miss answer the same.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._found: OrderedDict[tuple[Callable[[Object], Any], bytes], Any] = OrderedDict()
        self.read = 0
        """Objects read because no equal one had been."""

    def get(self, reader: Callable[[Object], T], payload: bytes) -> T:
        struct = wire.parse(payload)
        key = (reader, wire.canonical(struct))
        try:
            found: T = self._found[key]
            self._found.move_to_end(key)
        except KeyError:
            found = reader(wire.from_struct(struct))
            self.read += 1
            if self._found.setdefault(key, found) is found:
                self._size += len(key[1])
            while self._size > self._limit and self._found:
                try:
                    (_, old), _ = self._found.popitem(last=False)
                except KeyError:
                    break
                self._size -= len(old)
        return found


views = _Views(VIEWS_MAX_BYTES)


def _lazy(message: Any) -> Resource:
    payload: bytes = message.resource
    parsed: list[Any] = []

    def struct() -> Any:
        if not parsed:
            parsed.append(wire.parse(payload))
        return parsed[0]

    return Resource(lambda: wire.from_struct(struct()), lambda path: wire.part(struct(), path))


class Request:
    """One call of a function.

    `now` answers Unix seconds. Only what decision needs a deadline may call it; rendering and planning fix it.
    """

    def __init__(self, payload: bytes, now: Callable[[], float]) -> None:
        self.envelope = wire.Envelope.FromString(payload)
        self.now = now

    @cached_property
    def xr(self) -> Resource:
        """The composite resource."""
        return _lazy(self.envelope.observed.composite)

    @cached_property
    def observed(self) -> Mapping[str, Resource]:
        """Composed resources that exist, by composition key, in sorted order."""
        found = self.envelope.observed.resources
        return {key: _lazy(found[key]) for key in sorted(found)}

    def is_ready(self, key: str) -> bool:
        """Whether a composed resource exists and is Ready."""
        found = self.observed.get(key)
        return found is not None and found.ready

    def required(self, requirement: str) -> Sequence[Resource] | None:
        """Resources that answer a requirement, sorted by namespace and name.

        None means that Crossplane has not fetched it yet; an empty sequence means that it looked and found nothing.
        """
        if requirement not in self.envelope.required_resources:
            return None
        found = [_lazy(item) for item in self.envelope.required_resources[requirement].items]
        return sorted(found, key=lambda r: (r.namespace, r.name))

    def required_one(self, requirement: str) -> Resource | None:
        """The first resource that answers a requirement; None where there is none yet, or none at all."""
        found = self.required(requirement)
        return found[0] if found else None

    def views(self, requirement: str, reader: Callable[[Object], T]) -> list[T] | None:
        """What a reader makes of each resource that answers a requirement, in the order they came; None as `required`.

        The reader must be a module's function that depends on nothing but the object, and its answer must never be
        changed: both are kept, and an object equal to one that is known is not read again.
        """
        if requirement not in self.envelope.required_resources:
            return None
        get = views.get
        return [get(reader, item.resource) for item in self.envelope.required_resources[requirement].items]

    def answered(self, requirement: str) -> bool:
        """Whether Crossplane has looked for a requirement."""
        return requirement in self.envelope.required_resources

    @cached_property
    def answers(self) -> Sequence[str]:
        """Names of the requirements that Crossplane has looked for, sorted."""
        return sorted(self.envelope.required_resources)
