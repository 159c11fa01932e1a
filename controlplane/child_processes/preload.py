"""Processes of one site that share what all of them load: forked from one that has loaded it.

The runner starts `python -m controlplane.child_processes.preload`, which imports modules and then
forks a process for each request. The kernel makes the runner its parent, as that adopts orphans: it
waits for it, signals it and reads its exit code. A fork has the environment of the runner's
children in /proc, and its own command line.
"""

import ctypes
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
from pathlib import Path
from select import select
from typing import Any, Final, NamedTuple, NoReturn, Protocol

from controlplane.child_processes.start import end_with_parent, spawn

logger = logging.getLogger(__name__)

# Bytes of a request, and its descriptors.
_MOST: Final = 1 << 17
_DESCRIPTORS: Final = 8
# The loaded process forks within this time, also on a busy machine (s).
_ANSWER_S: Final = 30.0
# Without a meaning: room for the command lines and variables of forks.
_ROOM: Final = "-" * 600
# The first message: the modules are loaded.
_LOADED: Final = b"loaded"
_RESET: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE)


class Process(Protocol):
    """What the runner does with a child."""

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
    """A child that another process has forked."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return its exit code, None while it runs; that of a signal is negative."""
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
    """The process from which children are forked; without it they are programs of their own."""

    def __init__(self, module: str, env: Mapping[str, str], log: Path) -> None:
        """Start the process, which imports `module`. It ends with this one."""
        self._connection, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._connection.settimeout(_ANSWER_S)
        with other:
            number = other.fileno()
            command = (sys.executable, "-m", __name__, str(number), module, _ROOM)
            self.process = spawn(command, {**env, "WEIR_ROOM": _ROOM}, log, [number])

    def is_ready(self) -> bool:
        """Return whether the modules are loaded, or will not be."""
        return self.process.poll() is not None or bool(select([self._connection], [], [], 0)[0])

    def start(
        self, command: Sequence[str], env: Mapping[str, str], log: Path, inherited: Sequence[int]
    ) -> Process:
        """Start a child as `spawn` does, by a fork where that is possible. Raises `OSError`."""
        parsed = parse(command)
        if parsed is None or self.process.poll() is not None:
            return spawn(command, env, log, inherited)
        request = json.dumps([os.getpid(), *parsed, dict(env), list(inherited)]).encode()
        try:
            with log.open("ab") as output:
                socket.send_fds(self._connection, [request], [output.fileno(), *inherited])
            pid = int(self._answer() or self._answer())
        except (OSError, ValueError) as error:
            logger.warning("%s is started without a fork: %s", command, error)
            # A late answer would be that of another request.
            self.process.kill()
            return spawn(command, env, log, inherited)
        return Adopted(pid)

    def _answer(self) -> bytes:
        """Return a message of the process: an id, or the first one, which is empty for loaded."""
        return self._connection.recv(64).removeprefix(_LOADED)


def main() -> None:
    """Load, then fork until the runner ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    runner = socket.socket(fileno=int(sys.argv[1]))
    importlib.import_module(sys.argv[2])
    # Collections in forks would write to each object, and so copy it.
    gc.collect()
    gc.freeze()
    runner.send(_LOADED)
    while True:
        data, descriptors, _, _ = socket.recv_fds(runner, _MOST, _DESCRIPTORS)
        if not data:
            return
        middle = os.fork()
        if middle == 0:
            middle = os.getpid()
            if os.fork():
                os._exit(0)
            # The runner adopts it.
            while os.getppid() == middle:
                time.sleep(0.001)
            _become(runner, json.loads(data), descriptors)
        os.waitpid(middle, 0)
        for descriptor in descriptors:
            os.close(descriptor)


def _become(runner: socket.socket, request: Sequence[Any], descriptors: Sequence[int]) -> NoReturn:
    """Be the requested process."""
    parent, arguments, variables, niceness, env, inherited = request
    end_with_parent(parent)
    runner.send(str(os.getpid()).encode())
    os.setsid()
    os.nice(niceness)
    for number in _RESET:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    runner.close()
    _redirect(descriptors[0])
    for wanted, descriptor in zip(inherited, descriptors[1:], strict=True):
        os.dup2(descriptor, wanted)
        if descriptor != wanted:
            os.close(descriptor)
    os.environ.clear()
    os.environ.update(env | variables)
    # Of the kernel's fields those after the state, which is the third one.
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    places = [int(field) for field in fields[45:49]]
    _show([sys.executable, "-m", *arguments], *places[:2])
    _show([f"{name}={value}" for name, value in os.environ.items()], *places[2:])
    sys.argv = arguments
    runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    sys.exit()


def _redirect(output: int) -> None:
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    for number in (1, 2):
        os.dup2(output, number)
    os.close(output)


def _show(words: Sequence[str], start: int, end: int) -> None:
    """Write words where /proc shows the command line, or the environment, of this process."""
    text = b"\0".join(map(os.fsencode, words))[: end - start - 1]
    ctypes.memmove(start, text.ljust(end - start, b"\0"), end - start)


if __name__ == "__main__":
    main()
