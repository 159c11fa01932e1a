"""A real pipeline driver in its own process group, and waiting for what it says."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import redis

from controlplane.wire import keys

# Spark's start on two busy cores, with room.
START_SECONDS = 120.0


class Driver:
    """Starts, kills and watches `python -m workers.pipeline` of one cluster."""

    def __init__(
        self,
        redis_url: str,
        directory: Path,
        cluster: str,
        environment: Mapping[str, str] | None = None,
        slots: int = 3,
        splits: int = 2,
    ) -> None:
        self.client = redis.Redis.from_url(redis_url)
        self.cluster = cluster
        self.log = directory / "driver.log"
        self.command = [
            sys.executable, "-m", "workers.pipeline", "--cluster", cluster, "--redis-url",
            redis_url, "--checkpoint", str(directory / "checkpoint"), "--slots", str(slots),
            "--splits", str(splits), "--trigger-ms", "200",
        ]  # fmt: skip
        self.environment = {**os.environ, **(environment or {})}
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the driver; it goes on from its checkpoint."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command,
                stdout=log,
                stderr=log,
                env=self.environment,
                start_new_session=True,
            )

    def kill(self) -> None:
        """End the whole process tree with -9, as a machine that loses power would."""
        assert self.process is not None
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(timeout=10)

    def telemetry(self) -> list[dict[str, Any]]:
        """Return all telemetry rows so far."""
        rows: Any = self.client.xrange(keys.telemetry_key(self.cluster))
        return [json.loads(fields[b"t"]) for _, fields in rows]

    def wait_for(self, done: Callable[[list[dict[str, Any]]], bool], what: str) -> None:
        """Wait until the telemetry satisfies `done`; fail with the driver's log otherwise."""
        deadline = time.monotonic() + START_SECONDS
        while not done(self.telemetry()):
            assert self.process is not None
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"no {what}:\n{self.log.read_text()[-4000:]}")
            time.sleep(0.1)
