"""What a ModelEndpoint asks for, read and judged."""

from dataclasses import dataclass

from modelplane import names
from modelplane.kube.objects import Resource, mapping, text
from modelplane.routing import urls


class UnsupportedCredentials(Exception):  # noqa: N818 - named like the reason of the condition it becomes
    """Credentials that the gateway has no way to add to a request."""


@dataclass(frozen=True)
class Endpoint:
    """An endpoint that can be routed to.

    `backend` names its Service; `server_name` is what its certificate must be for, empty without TLS; `ca_secret` names
    a Secret with the authorities to trust, empty for the public ones.
    """

    name: str
    namespace: str
    backend: str
    url: urls.EndpointURL
    server_name: str
    ca_secret: str
    paused: bool


def read(xr: Resource) -> Endpoint:
    """Read the endpoint; raises InvalidURL or UnsupportedCredentials, whose texts are for the user."""
    url = urls.parse(text(xr.spec, "url"))
    if xr.spec.get("rewritePath") is not None:
        urls.judge_path(text(xr.spec, "rewritePath"))
    if xr.spec.get("hostname") is not None:
        urls.judge_name(text(xr.spec, "hostname"), "spec.hostname")
    if mapping(xr.spec, "auth"):
        raise UnsupportedCredentials(
            "spec.auth is set, but Traefik cannot add a credential from a Secret to a request. Remove spec.auth and "
            "give the credential to clients, or put a proxy that adds it in front of the endpoint."
        )
    server_name, ca_secret = "", ""
    if url.tls:
        server_name = _server_name(xr, url)
        ca_secret = _ca_secret(xr)
    return Endpoint(
        name=xr.name,
        namespace=xr.namespace,
        backend=names.backend(xr.namespace, xr.name),
        url=url,
        server_name=server_name,
        ca_secret=ca_secret,
        paused=xr.spec.get("paused") is True,
    )


def _server_name(xr: Resource, url: urls.EndpointURL) -> str:
    explicit = text(xr.spec, "tls", "serverName")
    if explicit:
        return urls.judge_name(explicit, "spec.tls.serverName")
    if url.family != "FQDN":
        raise urls.InvalidURL(
            f"spec.url is https with the address {url.host}, and a certificate is verified by name: "
            "set spec.tls.serverName to the name in the certificate"
        )
    return url.host


def _ca_secret(xr: Resource) -> str:
    secret = mapping(xr.spec, "tls", "caSecretRef")
    key = text(secret, "key") or "ca.crt"
    if secret and key != "ca.crt":
        raise urls.InvalidURL(
            f"spec.tls.caSecretRef.key is {key!r}; Gateway API reads certificates to trust from the key ca.crt only"
        )
    return text(secret, "name")
