"""Waits with a reason: what was waited for, what was there instead, and what the logs said last."""

import time
from collections.abc import Callable
from typing import TypeVar

from tests.e2e.plane.client import RefusedError

T = TypeVar("T")

STEP_SECONDS = 0.05


class WaitError(AssertionError):
    """Something did not happen in time."""


def wait(
    what: str,
    check: Callable[[], T | None],
    seconds: float = 60,
    why: Callable[[], str] | None = None,
    step: float = STEP_SECONDS,
) -> T:
    """Call `check` until it returns something true, and return that.

    An answer that is not true, an API server's refusal and a closed connection all mean "not yet".
    Raises WaitError with the last of them and what `why` says.
    """
    deadline = time.monotonic() + seconds
    last: object = None
    while True:
        try:
            found = check()
            if found:
                return found
            last = found
        except (RefusedError, OSError) as error:
            last = error
        if time.monotonic() > deadline:
            break
        time.sleep(step)
    reason = why() if why else ""
    raise WaitError(f"not within {seconds:g} s: {what}\nlast answer: {last!r}\n{reason}")
