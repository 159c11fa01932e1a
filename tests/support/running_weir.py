"""Weir itself, started as `make run` starts it, on a data directory and port of its own."""

import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path

import psutil

from tests.support.redis_server import free_port

# Spark's first start on two busy cores, with room; the measured start is in docs/benchmarks.md.
START_SECONDS = 400.0
LIVE = re.compile(r"Weir is live after (\d+) s")


class RunningWeir:
    """One runner with all its processes; everything it says is in `output`."""

    def __init__(
        self,
        data: Path,
        environment: Mapping[str, str] | None = None,
        command: Sequence[str | Path] = (sys.executable, "-m", "controlplane.cli.main", "serve"),
    ) -> None:
        self.data = data
        self.command = command
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.output = data.parent / f"{data.name}.out"
        self.environment = {
            **os.environ,
            # That of this process would be shared by all.
            "PROMETHEUS_MULTIPROC_DIR": str(data / "request-metrics"),
            "WEIR_DATA": str(data),
            "WEIR_PORT": str(self.port),
            # Its start takes the time of what is tested.
            "WEIR_SPARE_DRIVER": "0",
            **(environment or {}),
        }
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> float:
        """Start Weir, wait until it says that it is live, and return how many seconds that took."""
        begun = time.monotonic()
        with self.output.open("wb") as out:
            self.process = subprocess.Popen(
                self.command,
                env=self.environment,
                stdout=out,
                stderr=out,
            )
        while not LIVE.search(self.said()):
            late = time.monotonic() - begun > START_SECONDS
            if late or self.process.poll() is not None:
                self.end()
                raise AssertionError(f"Weir did not start:\n{self.said()[-6000:]}")
            time.sleep(0.1)
        return time.monotonic() - begun

    def interrupt(self) -> int:
        """Press Ctrl-C, wait for the end and return the exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=60)

    def end(self) -> None:
        """End Weir whatever state it is in."""
        assert self.process is not None
        if self.process.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                self.interrupt()
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(timeout=60)

    def processes(self) -> list[psutil.Process]:
        """Return every process that was started for this data directory, however deep."""
        return [process for process in psutil.process_iter() if self._owns(process)]

    def _owns(self, process: psutil.Process) -> bool:
        try:
            return process.environ().get("WEIR_RUN") == str(self.data)
        except psutil.Error:
            return False

    def tree(self) -> list[psutil.Process]:
        """Return the runner and all that it and its processes have started."""
        assert self.process is not None
        runner = psutil.Process(self.process.pid)
        return [runner, *runner.children(recursive=True)]

    def stored(self, sql: str) -> int:
        """Return one number from the database of a Weir that has ended."""
        with closing(sqlite3.connect(self.data / "db.sqlite3")) as connection:
            return int(connection.execute(sql).fetchone()[0])

    def said(self) -> str:
        """Return what the runner has printed so far."""
        return self.output.read_text() if self.output.exists() else ""

    def login(self) -> tuple[str, str]:
        """Return the demo login that the first start made."""
        name, password = (self.data / "secrets" / "login").read_text().split()
        return name, password

    def redis_url(self) -> str:
        """Return the URL of the Redis that this Weir started."""
        return (self.data / "secrets" / "redis_url").read_text()
