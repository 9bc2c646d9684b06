"""Processes of the control plane: started with a log each, ended in reverse order, never outliving this process."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

STOP_SECONDS = 10


class Process:
    """A program with its log. Starting again appends to the log."""

    def __init__(self, name: str, command: Sequence[str], log: Path, env: Mapping[str, str] | None = None) -> None:
        self.name = name
        self.command = list(command)
        self.log = log
        self.env = dict(env or {})
        self._running: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; the kernel kills it when this process dies, however it dies."""
        guard = [shutil.which("setpriv") or "setpriv", "--pdeathsig", "KILL"]
        with self.log.open("ab") as log:
            self._running = subprocess.Popen(
                [*guard, *self.command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **self.env},
                # A terminal's interrupt goes to us alone: we end the others in order.
                start_new_session=True,
            )

    @property
    def alive(self) -> bool:
        return self._running is not None and self._running.poll() is None

    @property
    def pid(self) -> int:
        if self._running is None:
            raise RuntimeError(f"{self.name} was never started")
        return self._running.pid

    def send(self, number: int) -> None:
        """Send a signal, if it runs."""
        if self._running is not None and self.alive:
            self._running.send_signal(number)

    def kill(self) -> None:
        """Kill it as a crash would."""
        self.send(signal.SIGKILL)
        if self._running is not None:
            self._running.wait(STOP_SECONDS)

    def stop(self) -> None:
        """End it: politely, then by force."""
        self.send(signal.SIGTERM)
        if self._running is not None:
            try:
                self._running.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()

    def restart(self) -> None:
        self.stop()
        self.start()

    def tail(self, lines: int = 8) -> str:
        """Return the end of the log."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as stream:
            stream.seek(max(0, self.log.stat().st_size - 16384))
            return "\n".join(stream.read().decode(errors="replace").splitlines()[-lines:])

    def memory(self) -> int:
        """Return resident memory in MiB; 0 if it does not run."""
        if not self.alive:
            return 0
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) // 1024
        return 0

    def processor_seconds(self) -> float:
        """Return the processor time it has used, in seconds."""
        if not self.alive:
            return 0.0
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Processes:
    """All processes of one control plane, by name."""

    def __init__(self, logs: Path) -> None:
        self.logs = logs
        self.by_name: dict[str, Process] = {}

    def start(self, name: str, command: Sequence[str], env: Mapping[str, str] | None = None) -> Process:
        """Start a program; its log is `<name>.log`, new."""
        log = self.logs / f"{name}.log"
        log.unlink(missing_ok=True)
        process = Process(name, command, log, env)
        self.by_name[name] = process
        process.start()
        return process

    def __getitem__(self, name: str) -> Process:
        return self.by_name[name]

    def dead(self) -> list[Process]:
        return [p for p in self.by_name.values() if not p.alive]

    def stop(self) -> None:
        """End all, the last started first."""
        started = time.monotonic()
        for process in reversed(list(self.by_name.values())):
            if time.monotonic() - started > STOP_SECONDS * 2:
                process.kill()
            process.stop()
