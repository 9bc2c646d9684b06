"""What Crossplane observed, read as values."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from crossplane.function.proto.v1 import run_function_pb2 as fnv1

from modelplane.kube.objects import Resource
from modelplane.xfn import wire


def _lazy(message: fnv1.Resource) -> Resource:
    return Resource(lambda: wire.from_struct(message.resource))


class Request:
    """One call of a function.

    `now` answers Unix seconds. Only what decision needs a deadline may call it; rendering and planning fix it.
    """

    def __init__(self, message: fnv1.RunFunctionRequest, now: Callable[[], float]) -> None:
        self.message = message
        self.now = now

    @cached_property
    def xr(self) -> Resource:
        """The composite resource."""
        return _lazy(self.message.observed.composite)

    @cached_property
    def observed(self) -> Mapping[str, Resource]:
        """Composed resources that exist, by composition key, in sorted order."""
        found = self.message.observed.resources
        return {key: _lazy(found[key]) for key in sorted(found)}

    def is_ready(self, key: str) -> bool:
        """Whether a composed resource exists and is Ready."""
        found = self.observed.get(key)
        return found is not None and found.ready

    def required(self, requirement: str) -> Sequence[Resource] | None:
        """Resources that answer a requirement, sorted by namespace and name.

        None means that Crossplane has not fetched it yet; an empty sequence means that it looked and found nothing.
        """
        if requirement not in self.message.required_resources:
            return None
        found = [_lazy(item) for item in self.message.required_resources[requirement].items]
        return sorted(found, key=lambda r: (r.namespace, r.name))

    def required_one(self, requirement: str) -> Resource | None:
        """The first resource that answers a requirement; None where there is none yet, or none at all."""
        found = self.required(requirement)
        return found[0] if found else None

    def answered(self, requirement: str) -> bool:
        """Whether Crossplane has looked for a requirement."""
        return requirement in self.message.required_resources
