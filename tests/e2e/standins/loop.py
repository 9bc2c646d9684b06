"""The loop of a stand-in: look, do, sleep; an API server that is away is no reason to end."""

import base64
import json
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from tests.e2e.plane.client import Client, RefusedError


def client(kubeconfig: str) -> Client:
    """Make a client from a kubeconfig that `Client.kubeconfig` wrote, with its authority in a file beside it."""
    config = json.loads(Path(kubeconfig).read_text())
    cluster = config["clusters"][0]["cluster"]
    authority = Path(kubeconfig).with_suffix(".ca")
    authority.write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
    return Client(cluster["server"], config["users"][0]["user"]["token"], authority)


def forever(seconds: float, step: Callable[[], None]) -> None:
    """Call `step` again and again."""
    while True:
        try:
            step()
        except (RefusedError, OSError) as error:
            say(f"{error}")
        except Exception:
            traceback.print_exc()
        time.sleep(seconds)


def say(message: str) -> None:
    """Write a line to the log."""
    print(f"{time.strftime('%H:%M:%S')} {message}", file=sys.stderr, flush=True)
