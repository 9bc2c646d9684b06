"""A network namespace for this process and all it starts: only loopback, every port free, pod addresses local.

Needs root or unprivileged user namespaces, and iproute2.
"""

import ctypes
import os
import subprocess
from pathlib import Path

# https://man7.org/linux/man-pages/man2/unshare.2.html
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000

ADDRESSES = "10.240.0.0/12"
"""Every address of this range is local to the namespace: a process can listen on a pod's own address."""

_entered = False
_user = False


def _write(path: str, text: str) -> None:
    Path(path).write_text(text)


def enter() -> None:
    """Move this process into a new network namespace; a second call does nothing. Call it before any thread starts.

    Raises OSError where neither root nor user namespaces are there, CalledProcessError where `ip` fails.
    """
    global _entered, _user
    if _entered:
        return
    uid, gid = os.getuid(), os.getgid()
    libc = ctypes.CDLL(None, use_errno=True)
    flags = _CLONE_NEWNET if uid == 0 else _CLONE_NEWNET | _CLONE_NEWUSER
    if libc.unshare(flags) != 0:
        code = ctypes.get_errno()
        raise OSError(
            code, f"no network namespace (root or unprivileged user namespaces are needed): {os.strerror(code)}"
        )
    _user = uid != 0
    if _user:
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"0 {uid} 1")
        _write("/proc/self/gid_map", f"0 {gid} 1")
    for command in ("link set lo up", f"route replace local {ADDRESSES} dev lo"):
        subprocess.run(["ip", *command.split()], check=True)
    _entered = True


def doorway() -> str:
    """Return the command prefix with which another shell runs something in the namespace."""
    return f"nsenter -t {os.getpid()}{' -U --preserve-credentials' if _user else ''} -n"
