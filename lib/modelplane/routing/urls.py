"""URLs of endpoints: read, judged and refused before a gateway sees them."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

from modelplane.kube.names import is_dns_label

URL_MAX = 2048
PATH_MAX = 1024
"""Longest replacement that Gateway API takes in a URLRewrite filter."""
PORTS = {"http": 80, "https": 443}
API = "v1"

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)([^?#]*)(.*)", re.DOTALL)
_PATH = re.compile(r"/(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*")
_NUMBER = re.compile(r"[0-9]+|0[xX][0-9A-Fa-f]*")

Ip = ipaddress.IPv4Address | ipaddress.IPv6Address

_LOCAL_NAMES = ("localhost", "svc", "cluster.local", "localdomain")
_METADATA_NAMES = ("metadata.google.internal",)
_METADATA = frozenset(
    ipaddress.ip_address(a) for a in ("168.63.129.16", "100.100.100.200", "fd00:ec2::254", "fd20:ce::254")
)
"""Metadata and host agents of clouds that are not at a link-local address: Azure, Alibaba, AWS, Google."""
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class InvalidURL(ValueError):  # noqa: N818 - named like the reason of the condition it becomes
    """A URL or a path that no route may carry; the text says which field, what is wrong and what is accepted."""


@dataclass(frozen=True)
class EndpointURL:
    """Where an endpoint is.

    `host` is a lower-case DNS name or an address in canonical form without brackets; `family` is what an EndpointSlice
    calls it: IPv4, IPv6 or FQDN. `path` starts and ends with a slash and is the one that replaces a service's prefix.
    """

    scheme: str
    host: str
    port: int
    path: str
    family: str

    @property
    def tls(self) -> bool:
        """Whether the endpoint speaks TLS."""
        return self.scheme == "https"

    @property
    def service_port(self) -> int:
        """Port of the Service that stands for the endpoint.

        It follows the scheme, not the endpoint's own port: Traefik speaks TLS to port 443 and plain text to any other.
        """
        return PORTS[self.scheme]


def parse(url: str) -> EndpointURL:
    """Read the URL of an endpoint.

    The path is honoured; a last segment `v1` is left out, because clients bring it. Raises InvalidURL.
    """
    shown = url if len(url) <= 120 else url[:117] + "..."
    if len(url) > URL_MAX:
        raise InvalidURL(f"spec.url is {len(url)} characters long; at most {URL_MAX} are accepted")
    if not url.isascii() or any(c <= " " or c in '\\"<>^`{|}\x7f' for c in url):
        raise InvalidURL(
            f"spec.url {shown!r} has a character that no URL may have; write a host name with letters beyond ASCII in "
            "its xn-- form, and other characters of the path as %XX"
        )
    matched = _URL.fullmatch(url)
    scheme = matched[1].lower() if matched else ""
    if matched is None or scheme not in PORTS:
        raise InvalidURL(f"spec.url {shown!r} must start with http:// or https://, such as https://api.example.com/v1")
    authority, path, rest = matched[2], matched[3], matched[4]
    if rest:
        raise InvalidURL(f"spec.url {shown!r} must end with its path: a query (?) or a fragment (#) is not accepted")
    if "@" in authority:
        raise InvalidURL("spec.url must not carry a user or a password; spec.auth names a Secret for credentials")
    host, port = _split(authority, shown)
    name, family = _judge_host(host)
    return EndpointURL(
        scheme=scheme,
        host=name,
        port=PORTS[scheme] if port is None else port,
        path=_prefix(judge_path(path or "/", "the path of spec.url")),
        family=family,
    )


def judge_path(path: str, field: str = "spec.rewritePath") -> str:
    """Check a path that takes the place of a service's prefix, and give it its trailing slash.

    Raises InvalidURL.
    """
    if not path.startswith("/"):
        raise InvalidURL(f"{field} must start with /, such as /api/; got {path[:80]!r}")
    if len(path) >= PATH_MAX:
        raise InvalidURL(f"{field} is {len(path)} characters long; at most {PATH_MAX - 1} are accepted")
    if _PATH.fullmatch(path) is None:
        raise InvalidURL(f"{field} may have letters, digits, %XX and - . _ ~ ! $ & ' ( ) * + , ; = : @ /; got {path!r}")
    if "//" in path or re.search(r"%2f|%5c|%00", path, re.IGNORECASE):
        raise InvalidURL(f"{field} must not have an empty segment, nor a slash written as %XX; got {path[:80]!r}")
    if any(re.sub("%2e", ".", s, flags=re.IGNORECASE) in (".", "..") for s in path.split("/")):
        raise InvalidURL(f"{field} must not have the segments . and ..; got {path[:80]!r}")
    return path if path.endswith("/") else path + "/"


def judge_name(name: str, field: str) -> str:
    """Check a DNS name that is sent as a Host header or verified in a certificate; answers it in lower case.

    Raises InvalidURL.
    """
    clean = name.lower().removesuffix(".")
    labels = clean.split(".")
    if len(clean) > 253 or not all(is_dns_label(label) for label in labels) or _NUMBER.fullmatch(labels[-1]):
        raise InvalidURL(f"{field} must be a DNS name such as api.example.com; got {name[:80]!r}")
    return clean


def _prefix(path: str) -> str:
    return path.removesuffix(f"{API}/") if path.endswith(f"/{API}/") else path


def _split(authority: str, shown: str) -> tuple[str, int | None]:
    matched = re.fullmatch(r"(\[[^\[\]]*\]|[^\[\]:]*)(?::([0-9]*))?", authority)
    if matched is None or not matched[1]:
        raise InvalidURL(
            f"spec.url {shown!r} must have a host, and a port as a number; an IPv6 address goes in brackets, "
            "such as http://[2001:db8::1]:8080"
        )
    host, digits = matched[1], matched[2]
    if not digits:
        return host, None
    port = int(digits) if len(digits) <= 5 else 0
    if not 1 <= port <= 65535:
        raise InvalidURL(f"spec.url {shown!r} has port {digits[:20]}; ports are 1 to 65535")
    return host, port


def _judge_host(host: str) -> tuple[str, str]:
    if host.startswith("["):
        try:
            address: Ip = ipaddress.IPv6Address(host[1:-1])
        except ValueError:
            raise InvalidURL(f"spec.url has {host[:80]}, which is not an IPv6 address") from None
        if "%" in host:
            raise InvalidURL(f"spec.url has {host[:80]}: an address with a zone is only valid on one machine")
        return _judge_address(address), "IPv6"
    labels = host.lower().removesuffix(".").split(".")
    if _NUMBER.fullmatch(labels[-1]):
        try:
            address = ipaddress.IPv4Address(host)
        except ValueError:
            raise InvalidURL(
                f"spec.url has host {host[:80]!r}, which resolvers may read as an address; write an IPv4 address as "
                "four decimal numbers, such as 192.0.2.10"
            ) from None
        return _judge_address(address), "IPv4"
    for local in (*_LOCAL_NAMES, *_METADATA_NAMES):
        if labels[-len(local.split(".")) :] == local.split("."):
            raise InvalidURL(
                f"spec.url has host {host[:80]!r}, which is inside the control plane: endpoints are reached through a "
                "public gateway, so names under localhost, svc and cluster.local and metadata services are refused"
            )
    name = judge_name(host, "the host of spec.url")
    if "." not in name:
        raise InvalidURL(f"spec.url has host {host[:80]!r}; a full name such as {name[:80]}.example.com is needed")
    return name, "FQDN"


def _judge_address(address: Ip) -> str:
    for candidate in (address, *_embedded(address)):
        what = _local(candidate)
        if what:
            raise InvalidURL(
                f"spec.url has address {address}, which is {what}: an endpoint must be reachable from the control "
                "plane's gateway, and must not be the gateway itself or its surroundings"
            )
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        raise InvalidURL(f"spec.url has address {address}; write the IPv4 address {address.ipv4_mapped} itself")
    return str(address)


def _embedded(address: Ip) -> list[Ip]:
    if isinstance(address, ipaddress.IPv4Address):
        return []
    found: list[Ip] = [a for a in (address.ipv4_mapped, address.sixtofour) if a is not None]
    if address.teredo is not None:
        found.append(address.teredo[1])
    if address in _NAT64 or int(address) < 1 << 32:
        found.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return found


def _local(address: Ip) -> str:
    if address.is_unspecified or (address.version == 4 and int(address) < 1 << 24):
        return "unspecified"
    if address.is_loopback:
        return "loopback"
    if address.is_link_local:
        return "link-local, where clouds keep their metadata service"
    if address in _METADATA:
        return "a cloud's metadata service"
    if address.is_multicast:
        return "multicast"
    if address.version == 4 and int(address) >= 240 << 24:
        return "reserved"
    return ""
