"""The volume: what is complete, what is on its way, and the record of what it is.

model/             every file, only once all are there
.modelplane.json   the record, written last
.partial/commit    which commit is being fetched, so that a later run goes on with the same one
.partial/files/    files that have arrived, and `NAME.incomplete` of those that have not
"""

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from modelplane_hydrator import NoSpace, Refused
from modelplane_hydrator.hub import File

CHUNK = 4 * 1024 * 1024
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Volume:
    """A mounted volume that holds, or will hold, one artifact."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.model = root / "model"
        self.record = root / ".modelplane.json"
        self.partial = root / ".partial"
        self.files = self.partial / "files"

    def recorded(self, id_: str) -> tuple[str, list[File]] | None:
        """Commit and files of a complete artifact; None where the volume holds none yet.

        Raises Refused where it holds another one.
        """
        try:
            raw = json.loads(self.record.read_text())
            found = raw["commit"], [File(**f) for f in raw["files"]]
            same = raw["id"] == id_
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError):
            return None
        if not same:
            raise Refused(f"{self.root} holds another artifact: {str(raw['id'])[:80]}, not {id_}")
        return found

    def begin(self) -> str:
        """Prepare for files to arrive; answers the commit that an earlier run was fetching, or nothing."""
        with full_is_no_space():
            if self.model.exists():
                # An earlier run stopped before the record, or the record cannot be read: check all files anew.
                shutil.rmtree(self.files, ignore_errors=True)
                self.partial.mkdir(parents=True, exist_ok=True)
                self.model.rename(self.files)
            self.files.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            return (self.partial / "commit").read_text().strip()
        return ""

    def pin(self, commit: str) -> None:
        """Remember which commit is being fetched."""
        write(self.partial / "commit", commit)

    def make_room(self, files: Sequence[File]) -> None:
        """Raise NoSpace where what is still to come cannot fit."""
        there = sum(p.stat().st_size for p in self.files.rglob("*") if p.is_file())
        missing = sum(f.size for f in files) - there
        free = shutil.disk_usage(self.root).free
        if missing > free:
            raise NoSpace(f"{missing / 2**30:.1f} GiB are still to come and the volume has {free / 2**30:.1f} GiB free")

    def finish(self, id_: str, source: dict[str, str], commit: str, files: Sequence[File]) -> None:
        """Make the files that have arrived the artifact."""
        known = {self.files / f.path for f in files}
        for stray in sorted(self.files.rglob("*")):
            if not stray.is_dir() and stray not in known:
                stray.unlink()
        self.files.rename(self.model)
        _sync_folder(self.root)
        record = {"id": id_, **source, "commit": commit, "files": [asdict(f) for f in files]}
        write(self.record, json.dumps(record, indent=1) + "\n")
        shutil.rmtree(self.partial)


def write(path: Path, content: str) -> None:
    """Write a small file whole or not at all."""
    with full_is_no_space():
        temporary = path.with_name(path.name + ".new")
        with temporary.open("w") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        _sync_folder(path.parent)


def settle(incomplete: Path, path: Path) -> None:
    """Give a file that is whole its name."""
    incomplete.replace(path)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    # Some network file systems have no fsync of a folder; the record is written last either way.
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def hasher(file: File) -> Any:
    """A hash that, fed the file's bytes, gives its digest."""
    if file.algorithm == "sha256":
        return hashlib.sha256()
    blob = hashlib.sha1(usedforsecurity=False)
    blob.update(f"blob {file.size}\0".encode())
    return blob


def feed(path: Path, hash_: Any) -> int:
    """Feed what is in a file to a hash; answers how many bytes."""
    count = 0
    with path.open("rb") as stream:
        while chunk := stream.read(CHUNK):
            hash_.update(chunk)
            count += len(chunk)
    return count


def is_whole(path: Path, file: File, *, hashes: bool) -> bool:
    """Whether a file is there with the right size and, with `hashes`, the right content."""
    if path.is_symlink() or not path.is_file() or path.stat().st_size != file.size:
        return False
    if not hashes:
        return True
    hash_ = hasher(file)
    feed(path, hash_)
    return bool(hash_.hexdigest() == file.digest)


@contextmanager
def full_is_no_space() -> Iterator[None]:
    """Turn the errors of a full volume into NoSpace."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise NoSpace(f"the volume is full: {error.strerror}") from None
        raise
