"""What every room of a cluster function needs at hand: the request, the response, the spec, and how names are made."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from modelplane import names
from modelplane.clusters.spec import ClusterSpec
from modelplane.composed import FULL, ProviderConfigRef
from modelplane.composed.managed import managed
from modelplane.kube.objects import Object, Resource, integer, mapping
from modelplane.labels import EXTERNAL_NAME, RESOURCE
from modelplane.xfn import Request, Response

SpecT = TypeVar("SpecT", bound=ClusterSpec[Any])

_NOTHING = Resource.of({})


class Desk(Generic[SpecT]):
    """One pass over one cluster."""

    def __init__(self, req: Request, rsp: Response, spec: SpecT) -> None:
        self.req = req
        self.rsp = rsp
        self.spec = spec

    def seen(self, key: str) -> bool:
        """Whether a resource exists."""
        return key in self.req.observed

    def ready(self, *keys: str) -> bool:
        """Whether resources exist and are Ready, all of them."""
        return all(self.req.is_ready(key) for key in keys)

    def resource(self, key: str) -> Resource:
        """An observed resource, or an empty one."""
        return self.req.observed.get(key, _NOTHING)

    def text(self, key: str, *path: str) -> str:
        """Read a string of an observed resource, empty where it does not exist."""
        return self.resource(key).text(*path)

    def integer(self, key: str, *path: str) -> int | None:
        """Read a whole number of an observed resource, None where it does not exist."""
        return integer(self.resource(key).dig(*path))

    def provider(self, key: str) -> Mapping[str, Any]:
        """`spec.forProvider` of an observed resource, empty where it does not exist."""
        return mapping(self.resource(key).dig("spec", "forProvider"))

    def external_name(self, key: str) -> str:
        """The cloud's own name or id of an observed resource."""
        return self.resource(key).annotations.get(EXTERNAL_NAME, "")

    def name(self, key: str, formula: str) -> str:
        """Name to refer to a resource by: Crossplane keeps the one it has, whatever the formula says now."""
        return self.resource(key).name or formula

    def unique(self, *parts: str) -> str:
        """A name that no other cluster in the account has, not even one of the same name before or after this."""
        uid = hashlib.sha256(self.spec.uid.encode()).hexdigest()[:8] if self.spec.uid else "00000000"
        return names.child(self.spec.namespace, self.spec.name, *parts, uid)

    @property
    def kubeconfig(self) -> str:
        """Name of the kubeconfig Secret, and of the ProviderConfigs that use it."""
        return names.child(self.spec.name, "kubeconfig")

    def remote_config(self) -> ProviderConfigRef:
        """How Objects and Releases of this function reach the new cluster."""
        return ProviderConfigRef(name=self.kubeconfig, kind="ProviderConfig")

    def add(
        self,
        key: str,
        build: Object | Callable[[], Object | None],
        *,
        gate: bool = True,
        ready: bool | None = None,
    ) -> bool:
        """Compose a resource once its gate is open, and ever after; ready is what it reports unless said otherwise."""
        maker = build if callable(build) else lambda: build
        return self.rsp.compose_or_hold(key, maker, gate=gate, ready=self.ready(key) if ready is None else ready)

    def managed(
        self,
        key: str,
        api_version: str,
        kind: str,
        provider: Mapping[str, Any],
        *,
        name: str = "",
        labels: Mapping[str, str] | None = None,
        external_name: str = "",
        policies: Sequence[str] = FULL,
        init: Mapping[str, Any] | None = None,
        connection_secret: str = "",
    ) -> Object:
        """Build a managed resource of the cloud, labelled with its key."""
        return managed(
            api_version,
            kind,
            provider,
            self.spec.config,
            name=name,
            labels={RESOURCE: key, **(labels or {})},
            external_name=external_name,
            policies=policies,
            init=init,
            connection_secret=connection_secret,
        )
