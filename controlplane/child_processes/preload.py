"""Processes that share what all of them load: forked from one that has loaded it.

`Preloaded` starts `python -m controlplane.child_processes.preload`, which imports modules and then
forks a process for each request: children of the runner, drivers of the agent, and the Python
processes of Spark (`spark/forked.py`). The kernel makes the process that started it the parent of
the forks that it requests, as that adopts orphans: it waits for them, signals them and reads their
exit codes. Others end with the connection that requested them. A fork has its own command line and
environment in /proc.
"""

import ctypes
import fcntl
import gc
import importlib
import json
import logging
import os
import runpy
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from select import select
from threading import Lock
from typing import Any, Final, NamedTuple, NoReturn, Protocol

from controlplane.child_processes.start import end_with_parent, spawn
from controlplane.child_processes.trees import reap_adopted

logger = logging.getLogger(__name__)

# What many processes with little work each do better with: few arenas of malloc, and Arrow without
# a pool of its own. A dozen workers would each keep tens of megabytes that they do not use.
SPARING: Final = {"MALLOC_ARENA_MAX": "2", "ARROW_DEFAULT_MEMORY_POOL": "system"}
# Bytes of a request, and its descriptors.
_MOST: Final = 1 << 17
_DESCRIPTORS: Final = 8
# A process is forked within this time, also on a busy machine (s).
_ANSWER_S: Final = 30.0
# So long after its start those who request a fork wait together until the modules are loaded (s).
_LOADING_S: Final = 10.0
# A request comes at once, or its sender has been killed or stopped (s).
_REQUEST_S: Final = 2.0
# Without a meaning: room for the command lines and variables of forks.
_ROOM: Final = "-" * 3000
# A descriptor above those that a request names.
_FREE: Final = 1000
# Not SIGPIPE, which Python ignores: writing to a closed connection is an exception.
_RESET: Final = (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
# Linux: the call that names a process, and the setting of a descriptor's signal.
_PR_SET_NAME: Final = 15
_F_SETSIG: Final = 10


class Process(Protocol):
    """What the runner and the agent do with a child."""

    @property
    def pid(self) -> int:
        """Return its id."""

    @property
    def returncode(self) -> int | None:
        """Return its exit code once `poll` has."""

    def poll(self) -> int | None:
        """Return its exit code, None while it runs; that of a signal is negative."""

    def send_signal(self, number: int, /) -> None:
        """Send it a signal unless it has ended."""

    def kill(self) -> None:
        """Kill it unless it has ended."""


class Adopted:
    """A child that another process has forked; threads may share it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._lock = Lock()

    def poll(self) -> int | None:
        """Return its exit code, None while it runs; that of a signal is negative."""
        with self._lock:
            if self.returncode is None:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                self.returncode = os.waitstatus_to_exitcode(status) if pid else None
            return self.returncode

    def send_signal(self, number: int, /) -> None:
        """Send it a signal unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it unless it has ended."""
        self.send_signal(signal.SIGKILL)


class ModuleCommand(NamedTuple):
    """A command line of this Python, taken apart: `python -m` of `arguments`."""

    arguments: list[str]
    variables: dict[str, str]
    niceness: int


def parse(command: Sequence[str]) -> ModuleCommand | None:
    """Return the parts of `[nice -n N] [env NAME=VALUE …] python -m …`, None for another one."""
    words, variables, niceness = list(command), dict[str, str](), 0
    if words[:2] == ["nice", "-n"]:
        niceness, words = int(words[2]), words[3:]
    if words[:1] == ["env"]:
        words = words[1:]
        while "=" in words[0]:
            name, _, value = words.pop(0).partition("=")
            variables[name] = value
    if words[:2] != [sys.executable, "-m"]:
        return None
    return ModuleCommand(words[2:], variables, niceness)


class Preloaded:
    """The process from which others are forked; without it they are programs of their own.

    `path`: its socket.
    """

    def __init__(self, module: str, env: Mapping[str, str], log: Path, folder: str) -> None:
        """Start the process, which imports `module`; it ends with this one. Raises `OSError`.

        `folder`: of its socket, for this user alone.
        """
        self.path = f"{folder}/fork"
        self._started: list[Process] = []
        self._arguments = module, {**SPARING, **env, "WEIR_ROOM": _ROOM}, log
        self._launch()

    def _launch(self) -> None:
        module, variables, log = self._arguments
        Path(self.path).unlink(missing_ok=True)
        # The other end is open in the process until the modules are loaded.
        loading, other = socket.socketpair()
        with other, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(self.path)
            listener.listen(64)
            numbers = (listener.fileno(), other.fileno())
            command = (sys.executable, "-m", __name__, *map(str, numbers), module, _ROOM)
            self.process = spawn(command, variables, log, numbers)
        self._loading, self._loaded_by = loading, time.monotonic() + _LOADING_S

    def is_ready(self, wait_s: float = 0.0) -> bool:
        """Return whether the modules are loaded, or will not be; waits for it up to `wait_s`."""
        return bool(select([self._loading], [], [], max(0.0, wait_s))[0])

    def revive(self) -> None:
        """Start it again if it has ended. Raises `OSError`."""
        if self.process.poll() is not None:
            self._launch()

    def start(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        log: Path,
        inherited: Sequence[int] = (),
    ) -> Process:
        """Start a child as `spawn` does, by a fork where that is possible. Raises `OSError`."""
        process = self._fork(command, env, log, inherited) or spawn(command, env, log, inherited)
        self._started = [item for item in (*self._started, process) if item.returncode is None]
        return process

    def _fork(
        self, command: Sequence[str], env: Mapping[str, str], log: Path, inherited: Sequence[int]
    ) -> Process | None:
        parsed = parse(command)
        if parsed is None or self.process.poll() is not None:
            return None
        if not self.is_ready(self._loaded_by - time.monotonic()):
            logger.warning("%s is started without a fork: the modules are not loaded yet", command)
            return None
        request = json.dumps([os.getpid(), *parsed, dict(env), [0, 1, 2, *inherited]])
        nothing = Path(os.devnull)
        try:
            with (
                socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server,
                nothing.open("rb") as given,
                log.open("ab") as output,
            ):
                server.settimeout(_ANSWER_S)
                server.connect(self.path)
                streams = (given.fileno(), output.fileno(), output.fileno())
                socket.send_fds(server, [request.encode()], [*streams, *inherited])
                pid = int(server.recv(64))
                # It ends at once if nobody waits for it any more.
                server.send(b"go")
        except (OSError, ValueError) as error:
            logger.warning("%s is started without a fork: %s", command, error)
            # Others would wait as long for it; its forks live on.
            self.process.kill()
            return None
        return Adopted(pid)

    def reap_orphans(self) -> None:
        """Collect ended processes that this one has adopted, also those that nobody polls."""
        started = (self.process, *self._started)
        reap_adopted([process.pid for process in started if process.poll() is None])


def answers(path: str) -> bool:
    """Return whether a process forks others that are requested at a socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        return server.connect_ex(path) == 0


def main() -> None:
    """Load, then fork until the process ends that has started this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, _reap)
    listener = socket.socket(fileno=int(sys.argv[1]))
    importlib.import_module(sys.argv[3])
    # Collections in forks would write to each object, and so copy it.
    gc.collect()
    gc.freeze()
    os.close(int(sys.argv[2]))
    while True:
        client = listener.accept()[0]
        client.settimeout(_REQUEST_S)
        data, descriptors = b"", list[int]()
        with suppress(OSError):
            data, descriptors, _, _ = socket.recv_fds(client, _MOST, _DESCRIPTORS)
        if data and os.fork() == 0:
            listener.close()
            _become(client, json.loads(data), descriptors)
        client.close()
        for descriptor in descriptors:
            os.close(descriptor)
        # It has the variables of one process, which are no others' business.
        del data


def _reap(*_: object) -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _end_with(connection: socket.socket) -> None:
    """Let the kernel end this process (SIGTERM) when the other end is closed."""
    descriptor = connection.detach()
    fcntl.fcntl(descriptor, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(descriptor, _F_SETSIG, signal.SIGTERM)
    flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
    fcntl.fcntl(descriptor, fcntl.F_SETFL, flags | os.O_ASYNC)
    # Closed before: the kernel has sent nothing.
    other = socket.socket(fileno=descriptor)
    with suppress(BlockingIOError):
        if not other.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT):
            os._exit(1)
    other.detach()


def _belong_to(parent: int, connection: socket.socket) -> None:
    """Be a child of the process that has started the server, and lead a session."""
    middle = os.getpid()
    if os.fork():
        os._exit(0)
    while os.getppid() == middle:
        time.sleep(0.001)
    end_with_parent(parent)
    connection.settimeout(_ANSWER_S)
    connection.send(str(os.getpid()).encode())
    if not connection.recv(8):
        os._exit(1)
    connection.close()
    os.setsid()


def _become(client: socket.socket, request: Sequence[Any], descriptors: Sequence[int]) -> NoReturn:
    """Be the requested process."""
    parent, arguments, variables, niceness, env, wanted = request
    for number in _RESET:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if parent:
        _belong_to(parent, client)
    else:
        client.send(str(os.getpid()).encode())
        _end_with(client)
        ctypes.CDLL(None).prctl(_PR_SET_NAME, arguments[-1][-15:].encode())
    os.nice(niceness)
    given = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, _FREE) for descriptor in descriptors]
    for descriptor in descriptors:
        os.close(descriptor)
    for descriptor, number in zip(given, wanted, strict=True):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(env | variables)
    # Of the kernel's fields those after the state, which is the third one.
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    places = [int(field) for field in fields[45:49]]
    _show([sys.executable, "-m", *arguments], *places[:2])
    # Marks first, by which processes are found: there may be no room for all.
    names = sorted(
        os.environ, key=lambda name: (not name.startswith("WEIR_"), len(os.environ[name]))
    )
    _show([f"{name}={os.environ[name]}" for name in names], *places[2:])
    sys.argv = arguments
    sys.modules.pop(arguments[0], None)
    runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    sys.exit()


def _show(words: Sequence[str], start: int, end: int) -> None:
    """Write words where /proc shows the command line, or the environment, of this process."""
    text = b"\0".join(map(os.fsencode, words))[: end - start - 1]
    ctypes.memmove(start, text.ljust(end - start, b"\0"), end - start)


if __name__ == "__main__":
    main()
