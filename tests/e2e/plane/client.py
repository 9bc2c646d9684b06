"""A client of an API server: one request, one answer, dictionaries on both sides. One instance per thread."""

import base64
import contextlib
import http.client
import json
import ssl
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Manifest = dict[str, Any]

TIMEOUT_SECONDS = 60


class RefusedError(Exception):
    """An API server refused a request: `status` is the HTTP status, `message` what it said."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.message = message


def split(api_version: str) -> tuple[str, str]:
    """Split an apiVersion into group and version; the core group is empty."""
    group, _, version = api_version.rpartition("/")
    return group, version


class Client:
    """One identity on one API server."""

    def __init__(self, server: str, token: str, authority: Path, name: str = "") -> None:
        self.server = server
        self.token = token
        self.authority = authority
        self.name = name or server
        self._tls = ssl.create_default_context(cafile=str(authority))
        self._resources: dict[str, dict[str, Manifest]] = {}
        self._connection: http.client.HTTPSConnection | None = None

    def copy(self) -> "Client":
        """Make another client of the same identity, for another thread."""
        return Client(self.server, self.token, self.authority, self.name)

    def kubeconfig(self) -> str:
        """Return the identity as a kubeconfig."""
        authority = base64.b64encode(self.authority.read_bytes()).decode()
        return json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [
                    {"name": self.name, "cluster": {"server": self.server, "certificate-authority-data": authority}}
                ],
                "users": [{"name": "e2e", "user": {"token": self.token}}],
                "contexts": [{"name": "e2e", "context": {"cluster": self.name, "user": "e2e"}}],
                "current-context": "e2e",
            },
            indent=1,
        )

    def _connect(self, timeout: float) -> http.client.HTTPSConnection:
        host = urllib.parse.urlsplit(self.server).netloc
        return http.client.HTTPSConnection(host, context=self._tls, timeout=timeout)

    def request(self, method: str, path: str, body: Any = None, content: str = "application/json", **query: str) -> Any:
        """Send one request and return the decoded answer; raises RefusedError and OSError."""
        if query:
            path += "?" + urllib.parse.urlencode(query)
        headers = {"Authorization": f"Bearer {self.token}", "Accept": "application/json", "Content-Type": content}
        data = None if body is None else json.dumps(body)
        for attempt in (1, 2):
            reused = self._connection is not None
            connection = self._connection = self._connection or self._connect(TIMEOUT_SECONDS)
            try:
                connection.request(method, path, data, headers)
                response = connection.getresponse()
                text = response.read()
                break
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                self._connection = None
                # An idle connection that the server has closed since says nothing about the server.
                if attempt == 2 or not reused:
                    raise OSError(f"{self.name}: {error}") from error
        try:
            answer = json.loads(text) if text else None
        except ValueError:
            answer = text.decode(errors="replace")
        if response.status >= 400:
            message = answer.get("message", "") if isinstance(answer, dict) else str(answer)
            raise RefusedError(response.status, message)
        return answer

    def resource(self, api_version: str, kind: str) -> Manifest:
        """Look up how a kind is served; raises RefusedError 404 if it is not."""
        known = self._resources.get(api_version, {})
        if kind not in known:
            root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
            served = self.request("GET", root)["resources"]
            known = {r["kind"]: r for r in served if "/" not in r["name"]}
            self._resources[api_version] = known
        if kind not in known:
            raise RefusedError(404, f"{self.name} does not serve {kind} of {api_version}")
        return known[kind]

    def path(self, api_version: str, kind: str, name: str = "", namespace: str = "") -> str:
        """Return the path of an object, or of a collection without a name."""
        root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        resource = self.resource(api_version, kind)
        if resource["namespaced"] and namespace:
            root += f"/namespaces/{namespace}"
        root += f"/{resource['name']}"
        return f"{root}/{name}" if name else root

    def _path_of(self, manifest: Manifest, collection: bool = False) -> str:
        meta = manifest["metadata"]
        name = "" if collection else meta["name"]
        namespace = meta.get("namespace", "")
        if not namespace and self.resource(manifest["apiVersion"], manifest["kind"])["namespaced"]:
            namespace = "default"
        return self.path(manifest["apiVersion"], manifest["kind"], name, namespace)

    def get(self, api_version: str, kind: str, name: str, namespace: str = "") -> Manifest | None:
        """Read an object, or None if it is not there."""
        try:
            found: Manifest = self.request("GET", self.path(api_version, kind, name, namespace))
            return found
        except RefusedError as error:
            if error.status == 404:
                return None
            raise

    def list(self, api_version: str, kind: str, namespace: str = "", labels: str = "") -> list[Manifest]:
        """Read the objects of a kind, in all namespaces unless one is given; none where the kind is not served."""
        query = {"labelSelector": labels} if labels else {}
        try:
            found = self.request("GET", self.path(api_version, kind, "", namespace), **query)
        except RefusedError as error:
            if error.status == 404:
                return []
            raise
        return [{"apiVersion": api_version, "kind": kind, **item} for item in found["items"]]

    def create(self, manifest: Manifest, **query: str) -> Manifest:
        made: Manifest = self.request("POST", self._path_of(manifest, collection=True), manifest, **query)
        return made

    def replace(self, manifest: Manifest, subresource: str = "", **query: str) -> Manifest:
        made: Manifest = self.request("PUT", self._path_of(manifest) + subresource, manifest, **query)
        return made

    def apply(self, manifest: Manifest, subresource: str = "", manager: str = "e2e") -> Manifest:
        """Server-side apply, taking over what others set."""
        made: Manifest = self.request(
            "PATCH",
            self._path_of(manifest) + subresource,
            manifest,
            "application/apply-patch+yaml",
            fieldManager=manager,
            force="true",
        )
        return made

    def patch(self, manifest: Manifest, change: Manifest, subresource: str = "") -> Manifest:
        """Merge a change into an object that is there."""
        path = self._path_of(manifest) + subresource
        made: Manifest = self.request("PATCH", path, change, "application/merge-patch+json")
        return made

    def delete(self, manifest: Manifest, propagation: str = "Background") -> None:
        """Delete an object; one that is not there is fine."""
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation}
        try:
            self.request("DELETE", self._path_of(manifest), options)
        except RefusedError as error:
            if error.status != 404:
                raise

    def ready(self) -> bool:
        """Say whether the server says it is ready."""
        try:
            return bool(self.request("GET", "/readyz") == "ok")
        except RefusedError:
            return False

    def token_of(self, namespace: str, name: str) -> str:
        """Make a token of a service account."""
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 86400},
        }
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        token: str = self.request("POST", path, request)["status"]["token"]
        return token

    def as_service_account(self, namespace: str, name: str) -> "Client":
        """Make a client that has the rights of a service account only."""
        return Client(self.server, self.token_of(namespace, name), self.authority, f"{namespace}/{name}")

    def watch(self, api_version: str, kind: str, seconds: int = 300) -> Iterator[tuple[str, Manifest]]:
        """Yield the objects there are, then each change, until the server ends the watch. Uses its own connection."""
        path = self.path(api_version, kind)
        found = self.request("GET", path)
        for item in found["items"]:
            yield "ADDED", {"apiVersion": api_version, "kind": kind, **item}
        query = urllib.parse.urlencode(
            {"watch": "1", "resourceVersion": found["metadata"]["resourceVersion"], "timeoutSeconds": str(seconds)}
        )
        connection = self._connect(seconds + 30)
        with contextlib.closing(connection):
            connection.request("GET", f"{path}?{query}", headers={"Authorization": f"Bearer {self.token}"})
            response = connection.getresponse()
            for line in response:
                event = json.loads(line)
                yield event["type"], event["object"]


def condition(manifest: Manifest | None, kind: str) -> Manifest:
    """Return a condition of an object, empty if it has none."""
    for found in ((manifest or {}).get("status") or {}).get("conditions") or []:
        if found.get("type") == kind:
            return dict(found)
    return {}


def is_true(manifest: Manifest | None, kind: str) -> bool:
    """Say whether a condition is True."""
    return condition(manifest, kind).get("status") == "True"
