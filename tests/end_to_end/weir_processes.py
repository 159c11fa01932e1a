"""The processes of a running Weir, which a test kills and stops by name."""

import signal
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

import psutil

from controlplane.processes.runtime.process_kinds import PROCESSES as KINDS
from tests.support.running_weir import RunningWeir

# The words of a process's command line, all of which are there.
COMMANDS: Final = {
    "web": ("controlplane.processes.runtime.web",),
    "worker": ("celery", "worker@weir"),
    "lab": ("celery", "lab@weir"),
    "webhooks": ("celery", "webhooks@weir"),
    "beat": ("celery", " beat"),
    "relay": ("workers.relay",),
    "sinks": ("workers.sinks",),
    "agent": ("workers.agent",),
    "driver": ("-m workers.pipeline",),
    "redis": ("redis-server",),
}
# Without a demonstration there is no replayer; the death of the supervisor is that of Weir.
UNTOUCHED: Final = {"replayer", "supervisor"}


def undeclared() -> set[str]:
    """Return the kinds of processes that no test kills."""
    return {kind.name for kind in KINDS} - COMMANDS.keys() - UNTOUCHED


class WeirProcesses:
    """The processes of a Weir by name."""

    def __init__(self, weir: RunningWeir) -> None:
        self._weir = weir

    def of(self, name: str) -> list[psutil.Process]:
        """Return the processes of a name with what they forked, the oldest first."""
        processes = [one for one in psutil.process_iter() if self._is(one, COMMANDS[name])]
        return sorted(processes, key=lambda one: one.create_time())

    def pids(self, name: str) -> set[int]:
        """Return the process ids of a name."""
        return {process.pid for process in self.of(name)}

    def main_pids(self, name: str) -> set[int]:
        """Return the process ids of a name without what its processes forked."""
        parents = {}
        for process in self.of(name):
            with suppress(psutil.Error):
                parents[process.pid] = process.ppid()
        return {pid for pid, parent in parents.items() if parent not in parents}

    def are_running(self, name: str, count: int) -> bool:
        """Return whether at least so many processes of a name run, none of them stopped."""
        try:
            stopped = [p for p in self.of(name) if p.status() == psutil.STATUS_STOPPED]
        except psutil.Error:
            return False
        return not stopped and len(self.main_pids(name)) >= count

    def kill(self, name: str) -> bool:
        """Kill (-9) the oldest process of a name, without what it forked; return False without one.

        The driver of an agent that was killed is ending, for example.
        """
        with suppress(psutil.Error):
            for process in self.of(name)[:1]:
                process.kill()
                return True
        return False

    def tree(self, name: str) -> list[psutil.Process]:
        """Return the oldest process of a name with what it forked."""
        process = self.of(name)[0]
        # The drivers of an agent are processes of their own.
        return [process, *([] if name == "agent" else process.children(recursive=True))]

    def owner_of(self, pids: Iterable[int], client_port: int) -> int | None:
        """Return which of these processes has the connection from a port, None for none."""
        for pid in pids:
            with suppress(psutil.Error):
                connections = psutil.Process(pid).net_connections("tcp")
                if any(one.raddr and one.raddr.port == client_port for one in connections):
                    return pid
        return None

    def _is(self, process: psutil.Process, words: Sequence[str]) -> bool:
        try:
            line = " ".join(process.cmdline())
            if not all(word in line for word in words):
                return False
            # It may have been a spare, which is not a driver before it has a checkpoint.
            if words == COMMANDS["driver"] and str(process.pid) not in self._owners():
                return False
            # Redis writes its title over its environment.
            redis = words == COMMANDS["redis"] and process.ppid() == self._runner
            return redis or process.environ().get("WEIR_RUN") == str(self._weir.data)
        except psutil.Error:
            return False

    def _owners(self) -> list[str]:
        """Return the process ids of those who have had the checkpoints last."""
        locks = (self._weir.data / "checkpoints").glob("*.lock")
        return [lock.read_text() for lock in locks]

    @property
    def _runner(self) -> int:
        """The process id of the runner."""
        assert self._weir.process is not None
        return self._weir.process.pid


def send_signal(processes: Sequence[psutil.Process], number: signal.Signals) -> None:
    """Send a signal to processes, some of which may have ended."""
    for process in processes:
        # The supervisor may have killed and restarted it.
        with suppress(psutil.Error):
            process.send_signal(number)
