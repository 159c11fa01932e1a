"""Real pipeline drivers, started by hand or kept by a real agent, and waiting for what they say."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psutil
import redis

from controlplane.child_processes.trees import kill_with_environment
from controlplane.wire import keys
from workers.agent.driver import MARK
from workers.agent.spare import Spare

# Spark's start on two busy cores, with room; that of `running_weir.py`.
START_SECONDS = 400.0
Telemetry = list[dict[str, Any]]


# The modules of Spark's Python processes: of tasks, of commits and of plans.
WORKER = "pyspark.worker"
COMMITTER = "ing_sink_runner"
PLANNER = "g_source_runner"
SERVER = "child_processes.preload"


def command_of(process: psutil.Process | None) -> str:
    """Return the command line of a process, "" if it has ended."""
    try:
        return " ".join(process.cmdline()) if process else ""
    except psutil.Error:
        return ""


def name_of(process: psutil.Process) -> str:
    """Return the name of a process, "" if it has ended."""
    try:
        return process.name()
    except psutil.Error:
        return ""


def kill_all(processes: list[psutil.Process]) -> None:
    """End processes with -9 that have not ended."""
    for process in processes:
        with suppress(psutil.Error):
            process.kill()


class Application(ABC):
    """The application of one cluster, seen through its telemetry."""

    def __init__(self, redis_url: str, cluster: str, log: Path) -> None:
        self.client = redis.Redis.from_url(redis_url)
        self.cluster = cluster
        self.log = log
        self.process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def command(self) -> list[str]:
        """Return the command line of the process to start."""

    @abstractmethod
    def environment(self) -> Mapping[str, str]:
        """Return what is added to the environment."""

    def start(self) -> None:
        """Start the process; the application goes on from its checkpoint."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command(),
                stdout=log,
                stderr=log,
                env={**os.environ, **self.environment()},
                start_new_session=True,
            )

    def kill(self) -> None:
        """End the process and its group with -9."""
        assert self.process is not None
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(timeout=60)

    def python_processes(self, module: str) -> list[psutil.Process]:
        """Return Spark's Python processes that run a module of PySpark, daemons before workers.

        Also those that a loaded process has forked, which have the module as their name.
        """
        assert self.process is not None
        below = psutil.Process(self.process.pid).children(recursive=True)
        return [item for item in below if module in f"{command_of(item)} {name_of(item)}"]

    def telemetry(self) -> Telemetry:
        """Return all telemetry rows so far."""
        rows: Any = self.client.xrange(keys.telemetry_key(self.cluster))
        return [json.loads(fields[b"t"]) for _, fields in rows]

    def wait_for(self, done: Callable[[Telemetry], bool], what: str) -> None:
        """Wait until the telemetry satisfies `done`; fail with the log otherwise."""
        deadline = time.monotonic() + START_SECONDS
        while not done(self.telemetry()):
            assert self.process is not None
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"no {what}:\n{self.log.read_text()[-4000:]}")
            time.sleep(0.1)

    def keep(self, done: Callable[[Telemetry], bool], seconds: float = START_SECONDS) -> None:
        """Wait until the telemetry satisfies `done`; start the process again where it has ended.

        While Redis is away nothing is done.
        """
        deadline = time.monotonic() + seconds
        while True:
            assert self.process is not None
            if self.process.poll() is not None:
                self.start()
            with suppress(redis.ConnectionError):
                if done(self.telemetry()):
                    return
            if time.monotonic() > deadline:
                raise AssertionError(f"not done in time:\n{self.log.read_text()[-4000:]}")
            time.sleep(0.1)


class Driver(Application):
    """`python -m workers.pipeline`, started by hand."""

    def __init__(
        self,
        redis_url: str,
        directory: Path,
        cluster: str,
        environment: Mapping[str, str] | None = None,
        nodes: int = 3,
        splits: int = 2,
        log_url: str = "",
        partitions: int = 0,
        max_records: int = 200_000,
    ) -> None:
        super().__init__(redis_url, cluster, directory / "driver.log")
        self._command = [
            sys.executable, "-m", "workers.pipeline", "--cluster", cluster,
            "--checkpoint", str(directory / "checkpoint"), "--nodes", str(nodes),
            "--splits", str(splits), "--trigger-ms", "200", "--partitions", str(partitions),
            "--max-records", str(max_records),
        ]  # fmt: skip
        urls = {"REDIS_URL": redis_url, "WEIR_LOG_URL": log_url}
        self._environment = urls | dict(environment or {})

    def command(self) -> list[str]:
        return self._command

    def environment(self) -> Mapping[str, str]:
        return self._environment


class SparedDriver(Driver):
    """A driver that starts from a spare, if there is one, as with an agent."""

    spare: Spare | None = None
    _mark = ""

    def prepare(self) -> Spare:
        """Start a spare, without Redis, and return it once it waits for its cluster."""
        log = self.log.with_name("spare.log")
        mark = f"{log}-{time.monotonic_ns()}"
        secrets = {"REDIS_URL": "", "WEIR_LOG_URL": ""}
        self.spare = Spare({**os.environ, **self.environment(), **secrets, MARK: mark}, mark, log)
        deadline = time.monotonic() + START_SECONDS
        while not self.spare.is_ready():
            if self.spare.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"no spare:\n{log.read_text()[-4000:]}")
            time.sleep(0.1)
        return self.spare

    def environment(self) -> Mapping[str, str]:
        return {**super().environment(), MARK: str(self.log)}

    def start(self) -> None:
        """Let the spare become the driver, or start one."""
        spare, self.spare = self.spare, None
        self._mark = spare.mark if spare else str(self.log)
        if spare is None:
            super().start()
            return
        assert isinstance(spare.process, subprocess.Popen)
        self.process = spare.process
        spare.become(self.command()[3:], self.environment(), self.log)

    def kill(self) -> None:
        """End all processes of the driver with -9, as an agent does before it starts another."""
        assert self.process is not None
        assert kill_with_environment(MARK, self._mark)
        self.process.wait(timeout=60)

    def end(self) -> None:
        """End the driver and the spare with -9."""
        self.kill()
        if self.spare is not None:
            assert isinstance(self.spare.process, subprocess.Popen)
            self._mark, self.process, self.spare = self.spare.mark, self.spare.process, None
            self.kill()


class KeptDriver(Application):
    """The driver of the cluster `sf`, kept by a real agent on a database of its own."""

    def __init__(self, redis_url: str, data: Path) -> None:
        super().__init__(redis_url, "sf", data / "agent.log")
        self._environment = {
            "WEIR_DATA": str(data),
            "REDIS_URL": redis_url,
            "WEIR_RESULTS_DATABASE_URL": os.environ["WEIR_RESULTS_URL"],
            "DJANGO_SETTINGS_MODULE": "controlplane.settings",
        }
        for step in ("migrate_all", "setup_demo"):
            subprocess.run(
                [sys.executable, "-m", "django", step, "--verbosity", "0"],
                env={**os.environ, **self._environment},
                check=True,
                stdout=subprocess.DEVNULL,
            )
        # Tests publish versions past the database, which the agent would take for an older one.
        with closing(sqlite3.connect(data / "db.sqlite3")) as database, database:
            database.execute("update controlplane_cluster set routing_version = 1000000")

    def command(self) -> list[str]:
        return [sys.executable, "-m", "workers.agent"]

    def environment(self) -> Mapping[str, str]:
        return self._environment

    def driver_pid(self) -> int:
        """Return the process id that the driver's heartbeat names."""
        pid: Any = self.client.hget(keys.driver_key(self.cluster), "pid")
        return int(pid)

    def kill_driver(self) -> None:
        """End the Spark driver with -9; the agent is left to see it."""
        os.kill(self.driver_pid(), signal.SIGKILL)

    def end(self) -> None:
        """Let the agent end its driver and itself."""
        assert self.process is not None
        self.process.terminate()
        self.process.wait(timeout=60)
