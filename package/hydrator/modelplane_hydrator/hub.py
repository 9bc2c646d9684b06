"""The file API of the Hugging Face hub: what files a revision has, and their bytes from any offset.

Source: https://huggingface.co/docs/hub/api
"""

import http.client
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import IO, Any
from urllib.parse import quote, urlsplit

from modelplane_hydrator import Refused, Unavailable

ENDPOINT = "https://huggingface.co"
TIMEOUT_SECONDS = 60
PATH_MAX = 1024
LISTING_MAX = 64 * 1024 * 1024

_RETRIED = (408, 425, 429)


@dataclass(frozen=True)
class File:
    """One file of a revision: its path, its size in bytes, and a hash.

    `algorithm` is sha256 for large files and git-sha1, the hash of a git blob, for those that are in git itself.
    """

    path: str
    size: int
    algorithm: str
    digest: str


@dataclass(frozen=True)
class Listing:
    """The files of a revision, by path, and the commit that the revision is now."""

    commit: str
    files: Sequence[File]


class Hub:
    """One repository of a hub; `token` may be empty."""

    def __init__(self, endpoint: str, repo: str, token: str) -> None:
        self.endpoint = endpoint.rstrip("/")
        self.repo = repo
        self._token = token
        self._opener = urllib.request.build_opener(_Redirects(token))

    def list(self, revision: str) -> Listing:
        """List a branch, tag or commit.

        Raises Refused where it does not exist, gives no access or lists what cannot be stored, Unavailable otherwise.
        """
        url = f"{self.endpoint}/api/models/{quote(self.repo)}/revision/{quote(revision, safe='')}?blobs=true"
        with self._open(url, f"{self.repo} at {revision}") as response:
            body = response.read(LISTING_MAX + 1)
        if len(body) > LISTING_MAX:
            raise Refused(f"{self.repo} lists more files than can be handled")
        try:
            raw = json.loads(body)
            commit, siblings = str(raw["sha"]), list(raw["siblings"])
        except (ValueError, KeyError, TypeError):
            raise Unavailable(f"{self.endpoint} did not answer with a listing of {self.repo}") from None
        if not commit.isalnum():
            raise Refused(f"{self.endpoint} names a commit that is none: {commit[:80]!r}")
        return Listing(commit, sorted(map(_file, siblings), key=lambda f: f.path))

    @contextmanager
    def read(self, commit: str, file: File, offset: int) -> Iterator[tuple[IO[bytes], int]]:
        """Open a file's bytes from an offset; answers the stream and the offset it really starts at.

        Raises Refused or Unavailable.
        """
        url = f"{self.endpoint}/{quote(self.repo)}/resolve/{quote(commit)}/{quote(file.path)}"
        with self._open(url, file.path, offset) as response:
            yield response, offset if response.status == http.client.PARTIAL_CONTENT else 0

    @contextmanager
    def _open(self, url: str, what: str, offset: int = 0) -> Iterator[Any]:
        request = urllib.request.Request(url, headers={"User-Agent": "modelplane-hydrator"})  # noqa: S310 - see command
        if self._token:
            request.add_unredirected_header("Authorization", f"Bearer {self._token}")
        if offset:
            request.add_header("Range", f"bytes={offset}-")
        try:
            with self._opener.open(request, timeout=TIMEOUT_SECONDS) as response:
                yield response
        except urllib.error.HTTPError as error:
            raise _meaning(error, what) from None
        except (urllib.error.URLError, http.client.HTTPException, ssl.SSLError, ConnectionError, TimeoutError) as error:
            raise Unavailable(f"{what}: {error}") from None


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follow redirects, taking the token along only to where it was meant for, and never from https to http."""

    def __init__(self, token: str) -> None:
        self._token = token

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        before, after = urlsplit(req.full_url), urlsplit(newurl)
        if before.scheme == "https" and after.scheme != "https":
            raise Refused(f"the hub redirects from https to {after.scheme or 'nowhere'}")
        request = super().redirect_request(req, fp, code, msg, headers, newurl)
        known = req.unredirected_hdrs.get("Authorization")
        if request is not None and known and (before.scheme, before.netloc) == (after.scheme, after.netloc):
            request.add_unredirected_header("Authorization", known)
        return request


def _meaning(error: urllib.error.HTTPError, what: str) -> Exception:
    said = error.headers.get("X-Error-Code", "")
    if error.code in _RETRIED or error.code >= 500:
        try:
            after = float(error.headers.get("Retry-After", ""))
        except ValueError:
            after = 0
        return Unavailable(f"{what}: the hub answers {error.code}", after)
    if error.code in (401, 403):
        known = "the token does not give access" if said != "GatedRepo" else "access must be asked for on the hub first"
        return Refused(f"{what}: {known}, or it does not exist ({error.code} {said})".rstrip(" )") + ")")
    if error.code == 404:
        return Refused(f"{what}: does not exist ({error.code} {said})".rstrip(" )") + ")")
    if error.code == 416:
        return Unavailable(f"{what}: the hub has no more bytes")
    return Refused(f"{what}: the hub answers {error.code}")


def _file(raw: Any) -> File:
    path = raw.get("rfilename") if isinstance(raw, dict) else None
    if not isinstance(path, str) or not _storable(path):
        raise Refused(f"the repository lists a path that cannot be stored: {path!r:.200}")
    large = raw.get("lfs")
    if isinstance(large, dict):
        algorithm, digest, size = "sha256", large.get("sha256") or large.get("oid"), large.get("size")
    else:
        algorithm, digest, size = "git-sha1", raw.get("blobId"), raw.get("size")
    if not isinstance(digest, str) or not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise Refused(f"the hub does not say the size and hash of {path!r:.200}")
    return File(path, size, algorithm, digest.removeprefix("sha256:").lower())


def _storable(path: str) -> bool:
    parts = path.split("/")
    return (
        0 < len(path) <= PATH_MAX
        and path.isprintable()
        and "\\" not in path
        and all(part not in ("", ".", "..") and len(part.encode()) <= 255 for part in parts)
    )


def matching(files: Sequence[File], patterns: Sequence[str]) -> list[File]:
    """Files that match any pattern, or all without patterns; a pattern that ends with / stands for a folder."""
    whole = [p + "*" if p.endswith("/") else p for p in patterns]
    return [f for f in files if not whole or any(fnmatchcase(f.path, p) for p in whole)]
