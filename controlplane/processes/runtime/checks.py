"""Checks before the start; each failure has one line and advice."""

import errno
import fcntl
import os
import shutil
import socket
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

from controlplane.installation import env
from controlplane.processes.runtime.errors import CheckFailed

PYTHON: Final = (3, 11)
# A day of the demo's checkpoints, log and samples stays under a gigabyte; the rest is margin.
FREE_BYTES: Final = 2_000_000_000

# With less room a database or Redis may already have failed to write.
FULL_BYTES: Final = 64 << 20


def check_python(version: tuple[int, ...] = sys.version_info[:2]) -> None:
    """Raise `CheckFailed` on a Python that is too old."""
    if version < PYTHON:
        raise CheckFailed(
            f"Python {'.'.join(map(str, version))} is too old, Weir needs 3.11 to 3.13",
            "install Weir with one of them; make run PYTHON=python3.11 after .venv is removed",
        )


def prepare_data(data: Path) -> None:
    """Create the data directory and its folders. Raises `CheckFailed`."""
    try:
        data.mkdir(parents=True, exist_ok=True, mode=0o700)
        restrict(data)
        for folder in ("logs", "redis", "checkpoints"):
            (data / folder).mkdir(exist_ok=True)
        probe = data / ".probe"
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        raise CheckFailed(
            f"the data directory {data} cannot be written: {error.strerror}",
            "give this user the directory, or set WEIR_DATA to another one",
        ) from error


def restrict(data: Path) -> None:
    """Withdraw all permissions of other users on a data directory; links are not followed.

    Nobody else reaches a file in a directory that is closed already, so only an open one is walked:
    a checkpoint has 10,000 files.
    """
    if not data.stat().st_mode & 0o077:
        return
    data.chmod(stat.S_IMODE(data.stat().st_mode) & 0o700)
    for folder, _, files in os.walk(data):
        for name in (".", *files):
            path = os.path.join(folder, name)  # noqa: PTH118 - faster for many files
            # Files of processes that still run may disappear meanwhile.
            with suppress(FileNotFoundError):
                mode = os.lstat(path).st_mode
                if mode & 0o077 and not stat.S_ISLNK(mode):
                    os.chmod(path, stat.S_IMODE(mode) & 0o700)  # noqa: PTH101 - as above


def check_disk(data: Path, needed: int = FREE_BYTES) -> None:
    """Raise `CheckFailed` if fewer than `needed` bytes are free."""
    free = shutil.disk_usage(data).free
    if free < needed:
        raise CheckFailed(
            f"{free / 1e9:.1f} GB are free at {data}, Weir needs {needed / 1e9:.1f} GB",
            "free some space, or set WEIR_DATA to another place",
        )


def proxy_warning() -> str:
    """Return a warning if HTTPS is required and no proxy is trusted to report it, else ""."""
    if not env.flag("WEIR_HTTPS") or env.networks("WEIR_TRUSTED_PROXIES"):
        return ""
    return (
        "WEIR_HTTPS is set without WEIR_TRUSTED_PROXIES: every request counts as http and is"
        " redirected to https without end. Set it to the addresses of the proxy, as 127.0.0.1"
    )


def is_full(directory: Path) -> bool:
    """Return whether the disk of a directory is full; a missing directory is not full."""
    try:
        return shutil.disk_usage(directory).free < FULL_BYTES
    except OSError:
        return False


def check_port(host: str, port: int) -> None:
    """Raise `CheckFailed` if the web port is taken, with its process and a free port."""
    if is_free(host, port):
        return
    other = next((p for p in range(port + 1, min(port + 200, 65536)) if is_free(host, p)), None)
    raise CheckFailed(
        f"port {port} is taken{_owner(port)}",
        f"end that process, or take another port: WEIR_PORT={other or '<port>'}",
    )


def is_free(host: str, port: int) -> bool:
    """Return whether a server could listen there. Raises `CheckFailed` for an unknown host."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return False
        raise CheckFailed(
            f"cannot listen on {host}:{port}: {error.strerror}", "check WEIR_HOST and WEIR_PORT"
        ) from error
    return True


def lock_data(data: Path) -> int:
    """Lock the data directory for this process and return the lock's descriptor.

    The kernel releases the lock when the process ends. Raises `CheckFailed` while another process
    holds it.
    """
    descriptor = os.open(data / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(descriptor, 20).decode().strip()
        os.close(descriptor)
        raise CheckFailed(
            f"Weir already runs on {data} (process {holder or 'unknown'})",
            "use that one, end it with Ctrl-C, or take another directory and port: "
            "WEIR_DATA=/some/where WEIR_PORT=8001",
        ) from None
    os.truncate(descriptor, 0)
    os.pwrite(descriptor, str(os.getpid()).encode(), 0)
    return descriptor


def _owner(port: int) -> str:
    try:
        for connection in psutil.net_connections("tcp"):
            if connection.status == psutil.CONN_LISTEN and connection.laddr[1:] == (port,):
                process = psutil.Process(connection.pid) if connection.pid else None
                return f" by {process.name()} (process {process.pid})" if process else ""
    except psutil.Error:
        pass
    return ""
