"""Directories of Unix domain sockets, whose paths must be short."""

import atexit
import os
import shutil
import socket
import tempfile
from pathlib import Path
from typing import Final

import psutil

_PREFIX: Final = "weir-sockets-"
# A socket's path has at most 107 bytes, and Spark adds "/.<uuid>.sock" to the directory's.
_MAX_DIRECTORY_BYTES: Final = 64
# Executors may run in directories with long names (YARN's containers), so they use this one.
_SHARED: Final = "/tmp"  # noqa: S108 - sockets get unique names and their user's mode
# A separator, a process id of up to seven digits, a dash and eight random characters.
_NAME_BYTES: Final = 17


def shared_directory() -> str | None:
    """Return the directory for sockets of executors; None if the platform has no such sockets.

    It is the same on every machine of a Spark cluster.
    """
    return _SHARED if hasattr(socket, "AF_UNIX") else None


def own_directory() -> str | None:
    """Create a directory for this process's sockets; None if no parent directory fits.

    Data pass faster through Unix domain sockets than through TCP on the loopback interface. Only
    this user can enter the directory. It is removed when the process ends; those of applications
    that were killed are removed by the next one.
    """
    if shared_directory() is None:
        return None
    for parent in (tempfile.gettempdir(), _SHARED):
        if len(os.fsencode(parent)) + len(_PREFIX) + _NAME_BYTES > _MAX_DIRECTORY_BYTES:
            continue
        _remove_stale(Path(parent))
        try:
            directory = tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=parent)
        except OSError:
            continue
        atexit.register(shutil.rmtree, directory, ignore_errors=True)
        return directory
    return None


def _remove_stale(parent: Path) -> None:
    """Remove the directories of processes that have ended."""
    for directory in parent.glob(f"{_PREFIX}*-*"):
        pid = directory.name.removeprefix(_PREFIX).partition("-")[0]
        if pid.isdigit() and not psutil.pid_exists(int(pid)):
            shutil.rmtree(directory, ignore_errors=True)
