"""A spare: a started process that becomes the driver of a cluster (`workers.pipeline.spare`)."""

import json
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from select import select
from typing import Final

from controlplane.child_processes.preload import Process
from controlplane.child_processes.start import spawn

COMMAND: Final = (sys.executable, "-m", "workers.pipeline.spare")


class Spare:
    """A process that waits for a cluster.

    `mark`: the value by which its processes are found; also those of the driver that it becomes.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        mark: str,
        log: Path,
        command: Sequence[str] = COMMAND,
        launch: Callable[..., Process] = spawn,
    ) -> None:
        """Start it with a log of its own. Raises `OSError` if it cannot start."""
        self.mark = mark
        self._log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        log.unlink(missing_ok=True)
        self._orders, theirs = socket.socketpair()
        with theirs:
            descriptor = theirs.fileno()
            self.process = launch([*command, str(descriptor)], environment, log, [descriptor])

    def is_ready(self) -> bool:
        """Return whether it waits for a cluster."""
        # What it wrote stays in the socket; the end of the process is readable, too.
        return bool(select([self._orders], [], [], 0)[0]) and self.process.poll() is None

    def become(self, arguments: Sequence[str], variables: Mapping[str, str], log: Path) -> None:
        """Make a ready spare the driver with these arguments, variables and log.

        Raises `OSError` if it has ended.
        """
        # Its processes have its log open: that file continues the driver's.
        earlier = log.read_bytes() if log.exists() else b""
        with self._log.open("r+b") as file:
            file.truncate(0)
            file.write(earlier)
        self._log.replace(log)
        with self._orders as orders:
            orders.sendall(f"{json.dumps([arguments, dict(variables)])}\n".encode())
