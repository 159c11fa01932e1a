"""`python -m workers.sinks`: write the results of queries to their sinks until a signal."""

import os
import signal
import time
from threading import Event
from types import FrameType

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
django.setup()

from redis import RedisError  # noqa: E402 - needs the set-up above

from controlplane.connections import redis_client  # noqa: E402
from controlplane.processes.runtime.beats import beat  # noqa: E402
from controlplane.processes.runtime.process_kinds import SINKS  # noqa: E402
from controlplane.sinks.process import NOTIFY_S, PERIOD_S, SinkProcess  # noqa: E402


def main() -> None:
    """Run until SIGINT or SIGTERM."""
    stop, process = Event(), SinkProcess()

    def end(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    while not stop.is_set():
        process.step()
        try:
            beat(redis_client(), SINKS.name)
        except RedisError:
            # Only sinks to streams need Redis.
            stop.wait(PERIOD_S)
        until = time.monotonic() + PERIOD_S
        while time.monotonic() < until and not stop.wait(NOTIFY_S if process.holds else PERIOD_S):
            process.notify()
    process.close()


if __name__ == "__main__":
    main()
