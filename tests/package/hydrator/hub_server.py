"""A local server that speaks the hub's file API, and misbehaves on request."""

import hashlib
import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

COMMIT = "a" * 40


def blob_id(content: bytes) -> str:
    return hashlib.sha1(f"blob {len(content)}\0".encode() + content).hexdigest()


class HubServer:
    """Serves `files` of one repository at revision main.

    `requests` are (method path, headers) as they came; `trouble(path, headers, count)` may answer a status, headers to
    send with it, or a number of bytes after which the connection breaks.
    """

    def __init__(self, files: dict[str, bytes], repo: str = "Qwen/Qwen3-8B", large: int = 1000) -> None:
        self.files = files
        self.repo = repo
        self.large = large
        self.commit = COMMIT
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.trouble: Callable[[str, dict[str, str], int], Any] = lambda path, headers, count: None
        self.listing: Callable[[list[dict[str, Any]]], Any] = lambda siblings: siblings
        self.cdn = ""
        self.ranges = True
        self.lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *args: Any) -> None:
                pass

            def do_GET(self) -> None:
                outer.answer(self)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def paths(self) -> list[str]:
        return [path for path, _ in self.requests]

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        path, headers = unquote(handler.path), dict(handler.headers)
        with self.lock:
            count = sum(p == path for p in self.paths())
            self.requests.append((path, headers))
        trouble = self.trouble(path, headers, count)
        if isinstance(trouble, tuple):
            status, extra = trouble
            self._send(handler, status, b"", extra)
            return
        if path.startswith(f"/api/models/{self.repo}/revision/"):
            revision = path.split("/revision/")[1].split("?")[0]
            if revision not in ("main", self.commit):
                self._send(handler, 404, b"", {"X-Error-Code": "RevisionNotFound"})
                return
            siblings = self.listing([self._sibling(p, c) for p, c in self.files.items()])
            self._send(handler, 200, json.dumps({"sha": self.commit, "siblings": siblings}).encode())
            return
        for prefix in (f"/{self.repo}/resolve/{self.commit}/", "/cdn/"):
            if path.startswith(prefix) and path.removeprefix(prefix) in self.files:
                name = path.removeprefix(prefix)
                if self.cdn and prefix != "/cdn/":
                    self._send(handler, 302, b"", {"Location": f"{self.cdn}/cdn/{name}"})
                else:
                    self._send_file(handler, self.files[name], headers.get("Range", ""), trouble)
                return
        self._send(handler, 404, b"", {"X-Error-Code": "EntryNotFound"})

    def _sibling(self, path: str, content: bytes) -> dict[str, Any]:
        raw: dict[str, Any] = {"rfilename": path, "size": len(content), "blobId": blob_id(content)}
        if len(content) >= self.large:
            raw["lfs"] = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 134}
        return raw

    def _send_file(self, handler: BaseHTTPRequestHandler, content: bytes, wanted: str, cut: Any) -> None:
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and self.ranges else 0
        body = content[start:]
        handler.send_response(206 if start else 200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body if cut is None else body[:cut])
        handler.close_connection = True

    def _send(self, handler: BaseHTTPRequestHandler, status: int, body: bytes, headers: Any = None) -> None:
        handler.send_response(status)
        for name, value in (headers or {}).items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)
