"""Requests to a served model, as a client of the gateway sends them."""

import http.client
import json
import threading
import time
import urllib.parse
from collections import Counter
from dataclasses import dataclass, field

from tests.e2e.plane.client import Manifest
from tests.e2e.plane.waiting import wait

TIMEOUT_SECONDS = 10


@dataclass(frozen=True)
class Answer:
    """An answer: HTTP status, decoded body (empty where it is no JSON), text, and when it came."""

    status: int
    body: Manifest
    text: str
    at: float = 0.0

    @property
    def pod(self) -> str:
        return str(self.body.get("e2e", {}).get("pod", ""))

    @property
    def path(self) -> str:
        return str(self.body.get("e2e", {}).get("path", ""))


class Caller:
    """One client with one connection."""

    def __init__(self, url: str) -> None:
        parts = urllib.parse.urlsplit(url)
        self.host, self.prefix = parts.netloc, parts.path.rstrip("/")
        self._connection: http.client.HTTPConnection | None = None

    def chat(self) -> Answer:
        """Ask for a completion; a connection that breaks is an answer with status 0."""
        if self._connection is None:
            self._connection = http.client.HTTPConnection(self.host, timeout=TIMEOUT_SECONDS)
        body = json.dumps({"model": "any", "messages": [{"role": "user", "content": "hello"}]})
        headers = {"content-type": "application/json"}
        try:
            self._connection.request("POST", f"{self.prefix}/v1/chat/completions", body, headers)
            answer = self._connection.getresponse()
            text = answer.read().decode(errors="replace")
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            self._connection = None
            return Answer(0, {}, repr(error), time.monotonic())
        try:
            decoded = json.loads(text)
        except ValueError:
            decoded = {}
        return Answer(answer.status, decoded, text, time.monotonic())


def first_answer(url: str) -> tuple[Answer, int]:
    """Wait for the first request that is served, and count those refused before it.

    Traefik takes a moment to load a route whose status says it is accepted.
    """
    caller = Caller(url)
    answers: list[Answer] = []

    def answered() -> Answer | None:
        answers.append(caller.chat())
        return answers[-1] if answers[-1].status == 200 else None

    return wait("the engine answers", answered, 10, lambda: str(answers[-1:]), step=0.2), len(answers) - 1


def stream(url: str) -> list[float]:
    """Ask for a stream and return when each event came, in seconds after the first."""
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=TIMEOUT_SECONDS)
    body = json.dumps({"model": "any", "stream": True})
    connection.request("POST", f"{parts.path}/v1/chat/completions", body, {"content-type": "application/json"})
    answer = connection.getresponse()
    assert answer.status == 200, answer.read()
    assert answer.headers["content-type"] == "text/event-stream"
    came = [time.monotonic() for line in answer if line.startswith(b"data:")]
    connection.close()
    return [at - came[0] for at in came]


@dataclass
class Load:
    """Steady traffic from another thread, between `with` and its end."""

    url: str
    pause: float = 0.02
    answers: list[Answer] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> "Load":
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(TIMEOUT_SECONDS * 2)

    def _run(self) -> None:
        caller = Caller(self.url)
        while not self._stop.is_set():
            self.answers.append(caller.chat())
            time.sleep(self.pause)

    def answered(self, count: int) -> None:
        """Wait until that many more requests were answered."""
        before = len(self.answers)
        wait(f"{count} more requests are answered", lambda: len(self.answers) >= before + count, 60, self.summary)

    @property
    def errors(self) -> list[Answer]:
        return [a for a in self.answers if a.status != 200]

    def summary(self) -> str:
        """Say what was answered, and for how long errors were seen."""
        counts = Counter(f"{a.status} {a.text[:60]}" for a in self.errors)
        window = self.errors[-1].at - self.errors[0].at if self.errors else 0.0
        return f"{len(self.answers)} requests, {len(self.errors)} errors within {window:.1f} s: {dict(counts)}"


def split(url: str, count: int) -> Counter[str]:
    """Send a number of requests and count answers by pod, or by status where there is none."""
    caller = Caller(url)
    return Counter(a.pod or f"{a.status} {a.text[:80]}" for a in (caller.chat() for _ in range(count)))
