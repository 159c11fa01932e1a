"""The process of sinks beside a test."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from django.db import connections

from controlplane.models import Sink
from controlplane.wire.network.destinations import SETTING

DEADLINE_S = 240.0


@contextmanager
def sinks_running(environment: dict[str, str]) -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen([sys.executable, "-m", "workers.sinks"], env=environment)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < deadline, list(Sink.objects.values())
        time.sleep(0.1)


def environment_of(redis_url: str, data: Path, destinations: str) -> dict[str, str]:
    """Return the environment of the process: databases of this test, and listed destinations."""
    return os.environ | {
        "DATABASE_URL": database_url("default"), "REDIS_URL": redis_url,
        "WEIR_RESULTS_DATABASE_URL": database_url("results"), "WEIR_DATA": str(data),
        SETTING: os.environ["WEIR_DESTINATIONS"] + " " + destinations,
    }  # fmt: skip


def database_url(alias: str) -> str:
    return f"sqlite:///{connections[alias].settings_dict['NAME']}"
