"""Looks at a plane from another thread, so that what passes is seen while something else is done."""

import threading
from types import TracebackType
from typing import Self

from tests.e2e.plane.client import RefusedError


class Looking:
    """Calls `look` every so many seconds between `with` and its end; what cannot be read then is looked at again."""

    END_SECONDS = 70
    """Longer than a request may take."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join(self.END_SECONDS)

    def _run(self) -> None:
        while not self._stop.wait(self._seconds):
            try:
                self.look()
            except (RefusedError, OSError):
                continue

    def look(self) -> None:
        raise NotImplementedError
