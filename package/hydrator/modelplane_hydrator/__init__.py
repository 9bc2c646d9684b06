"""Fetch the files of a model into a volume: `hydrate huggingface --repo=R --revision=V --dest=DIR --id=ID`.

`hub` lists and reads files, `volume` keeps them, `fetch` moves them from one to the other and checks them, `command` is
the command line. Values arrive as arguments and nothing is ever given to a shell.

Exit codes, which the Job that runs this relies on:

- 0: every file is there and is what the hub says it is;
- 64: no retry can help: bad arguments, no such repository, revision or file, no access, nothing matches, or the volume
  holds another artifact;
- 73: the volume is too small;
- 75: the hub or the network failed; what has arrived stays, and the next run goes on from there.
"""


class Refused(Exception):  # noqa: N818 - what the hub or the volume says
    """No retry can help (exit code 64)."""


class NoSpace(Exception):  # noqa: N818 - what the volume says
    """The volume is too small (exit code 73)."""


class Unavailable(Exception):  # noqa: N818 - what the network says
    """The hub cannot be reached now, or answers what it should not (exit code 75).

    `after` is how many seconds the hub asks to wait; 0 where it does not say.
    """

    def __init__(self, message: str, after: float = 0) -> None:
        super().__init__(message)
        self.after = after


EXIT_CODES: dict[type[Exception], int] = {Refused: 64, NoSpace: 73, Unavailable: 75}
