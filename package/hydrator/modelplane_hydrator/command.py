"""The command line."""

import argparse
import os
import re
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from modelplane_hydrator import EXIT_CODES, Refused, Unavailable, hub, volume
from modelplane_hydrator.fetch import fetch
from modelplane_hydrator.hub import File, Hub
from modelplane_hydrator.volume import Volume

TOKEN = "HF_TOKEN"  # noqa: S105 - the name of a variable, not its value

_REPO = re.compile(r"[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)?")
_REVISION = re.compile(r"[A-Za-z0-9_./-]{1,128}")
_COMMIT = re.compile(r"[0-9a-f]{40}")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Refused(message)


def parser() -> argparse.ArgumentParser:
    """The arguments."""
    outer = _Parser(prog="hydrate", description="Fetch the files of a model into a volume.", allow_abbrev=False)
    sources = outer.add_subparsers(dest="source", required=True, parser_class=_Parser)
    inner = sources.add_parser("huggingface", allow_abbrev=False, help="a repository of the Hugging Face hub")
    inner.add_argument("--repo", required=True)
    inner.add_argument("--revision", default="main", help="branch, tag or commit")
    inner.add_argument(
        "--include", action="append", default=[], metavar="PATTERN", help="files to fetch; may be repeated"
    )
    inner.add_argument("--dest", required=True, type=Path, help="where the volume is mounted")
    inner.add_argument("--id", required=True, help="identity of the artifact, which the volume remembers")
    inner.add_argument(
        "--verify", choices=["sizes", "hashes"], default="sizes", help="how files that are there are checked"
    )
    inner.add_argument("--endpoint", default=hub.ENDPOINT, help="URL of the hub")
    inner.add_argument("--pause", type=float, default=1.0, help="first wait between attempts, in seconds; it doubles")
    return outer


def main(arguments: Sequence[str]) -> int:
    """Run; answers the exit code."""
    try:
        options = parser().parse_args(arguments)
        _check(options)
        _hydrate(options)
    except (*EXIT_CODES,) as error:
        say(f"failed: {error}")
        return EXIT_CODES[type(error)]
    except OSError as error:
        say(f"failed: the volume: {error}")
        return EXIT_CODES[Unavailable]
    return 0


def run() -> NoReturn:
    """Entry point."""
    # The first process of a container ignores a signal that it has no handler for.
    signal.signal(signal.SIGTERM, lambda number, frame: os._exit(128 + number))
    sys.exit(main(sys.argv[1:]))


def say(message: str) -> None:
    """Log a line."""
    print(f"hydrate: {message}", file=sys.stderr, flush=True)


def _check(options: argparse.Namespace) -> None:
    if not _REPO.fullmatch(options.repo) or set(options.repo.split("/")) & {".", ".."}:
        raise Refused(f"--repo must be a repository such as Qwen/Qwen3-8B; got {options.repo[:80]!r}")
    if not _REVISION.fullmatch(options.revision) or set(options.revision.split("/")) & {"", ".", ".."}:
        raise Refused(f"--revision must be a branch, a tag or a commit; got {options.revision[:80]!r}")
    if not options.endpoint.startswith(("https://", "http://")):
        raise Refused(f"--endpoint must be an http or https URL; got {options.endpoint[:80]!r}")
    if not options.dest.is_dir():
        raise Refused(f"--dest {options.dest} is not a folder")


def _hydrate(options: argparse.Namespace) -> None:
    place = Volume(options.dest)
    source = Hub(options.endpoint, options.repo, os.environ.get(TOKEN, "").strip())
    known = place.recorded(options.id)
    if known is not None:
        _repair(place, source, *known, hashes=options.verify == "hashes", pause=options.pause)
        return
    commit, files = _plan(place.begin(), source, options.revision, options.include)
    place.pin(commit)
    place.make_room(files)
    size = sum(f.size for f in files) / 2**30
    say(f"fetching {len(files)} files, {size:.1f} GiB, of {options.repo} at commit {commit}")
    fetch(source, commit, files, place.files, options.pause, say)
    place.finish(options.id, {"repo": options.repo, "revision": options.revision}, commit, files)
    say("complete")


def _plan(begun: str, source: Hub, revision: str, patterns: Sequence[str]) -> tuple[str, list[File]]:
    """The commit to fetch and its files: the one that an earlier run began, so that no two commits mix."""
    listing = source.list(begun if _COMMIT.fullmatch(begun) else revision)
    files = hub.matching(listing.files, patterns)
    if not files:
        raise Refused(f"no file of {source.repo} at {revision} matches {', '.join(patterns) or 'anything'}")
    return listing.commit, files


def _repair(place: Volume, source: Hub, commit: str, files: Sequence[File], *, hashes: bool, pause: float) -> None:
    """Check what is there and replace what is damaged, file by file, so that readers keep all others."""
    damaged = [f for f in files if not volume.is_whole(place.model / f.path, f, hashes=hashes)]
    say(f"complete already; {len(damaged)} of {len(files)} files are damaged" if damaged else "complete already")
    if not damaged:
        return
    fetch(source, commit, damaged, _emptied(place.files, damaged), pause, say)
    for file in damaged:
        target = place.model / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        volume.settle(place.files / file.path, target)
    shutil.rmtree(place.partial)
    say("repaired")


def _emptied(folder: Path, files: Sequence[File]) -> Path:
    for file in files:
        (folder / file.path).unlink(missing_ok=True)
    return folder
