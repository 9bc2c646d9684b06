"""Files from a hub to a volume: several at a time, each from where it stopped, each checked."""

import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path

from modelplane_hydrator import Unavailable, volume
from modelplane_hydrator.hub import File, Hub

WORKERS = 4
ATTEMPTS = 6
PAUSE_MAX_SECONDS = 60

Say = Callable[[str], None]


def fetch(hub: Hub, commit: str, files: Sequence[File], folder: Path, pause: float, say: Say) -> None:
    """Fetch files into a folder, largest first; those that are whole already stay.

    `pause` is the first wait between attempts, in seconds; it doubles. Raises Refused, NoSpace or Unavailable.
    """
    stop = threading.Event()
    done = 0
    with ThreadPoolExecutor(WORKERS) as pool:
        order = sorted(files, key=lambda f: (-f.size, f.path))
        futures = [pool.submit(_one, hub, commit, f, folder / f.path, pause, stop) for f in order]
        pending = set(futures)
        while pending:
            finished, pending = wait(pending, timeout=30, return_when=FIRST_EXCEPTION)
            failed = next((f.exception() for f in finished if f.exception()), None)
            if failed is not None:
                stop.set()
                for future in pending:
                    future.cancel()
                raise failed
            done += len(finished)
            say(f"{done} of {len(files)} files")


def _one(hub: Hub, commit: str, file: File, path: Path, pause: float, stop: threading.Event) -> None:
    if volume.is_whole(path, file, hashes=False):
        return
    with volume.full_is_no_space():
        path.parent.mkdir(parents=True, exist_ok=True)
    for attempt in range(1, ATTEMPTS + 1):
        try:
            _attempt(hub, commit, file, path, stop)
            return
        except Unavailable as error:
            if attempt == ATTEMPTS or stop.is_set():
                raise
            time.sleep(min(PAUSE_MAX_SECONDS, max(error.after, pause * 2 ** (attempt - 1))))


def _attempt(hub: Hub, commit: str, file: File, path: Path, stop: threading.Event) -> None:
    incomplete = path.with_name(path.name + ".incomplete")
    hash_ = volume.hasher(file)
    there = volume.feed(incomplete, hash_) if incomplete.is_file() else 0
    if there > file.size:
        incomplete.unlink()
        there, hash_ = 0, volume.hasher(file)
    if there < file.size:
        with hub.read(commit, file, there) as (stream, start), volume.full_is_no_space():
            if start != there:
                there, hash_ = 0, volume.hasher(file)
            with incomplete.open("ab" if there else "wb") as target:
                while chunk := stream.read(volume.CHUNK):
                    if stop.is_set():
                        raise Unavailable(f"{file.path}: stopped")
                    target.write(chunk)
                    hash_.update(chunk)
                    there += len(chunk)
                    if there > file.size:
                        break
                target.flush()
                os.fsync(target.fileno())
    elif not incomplete.exists():
        with volume.full_is_no_space():
            incomplete.touch()
    if there < file.size:
        raise Unavailable(f"{file.path}: {there} of {file.size} bytes arrived")
    if there > file.size or hash_.hexdigest() != file.digest:
        incomplete.unlink()
        raise Unavailable(f"{file.path}: what arrived is not what the hub lists")
    volume.settle(incomplete, path)
