"""The driver's heartbeat: the state of an application for the agent and the pages.

Two threads: one shows that this Python process lives, the other that its JVM answers. The second
waits for the JVM as long as that is silent; the first writes when the last answer came.
"""

import logging
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import redis

from controlplane.wire import keys

logger = logging.getLogger("weir.pipeline")

BEAT_SECONDS: Final = 2.0
# A driver that is gone for this long is not running, whatever it reported last.
EXPIRES_SECONDS: Final = 30


class Heartbeat:
    """Writes the driver hash of a cluster every two seconds, from its own thread."""

    def __init__(self, client: "redis.Redis", cluster: str) -> None:
        self._client = client
        self._key = keys.driver_key(cluster)
        self._fields: dict[str, str | int] = {
            "pid": os.getpid(),
            "started_ms": _now_ms(),
            "state": "starting",
            "batch": -1,
            "error": "",
            "note": "",
            # Those of an earlier driver are in the same hash.
            "jvm_ms": 0,
            "phase": "",
        }
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def __enter__(self) -> "Heartbeat":
        self.update(state="starting")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join(timeout=5)

    def update(self, **fields: str | int) -> None:
        """Change fields and write them immediately; a Redis that is away is tried again."""
        with self._lock:
            self._fields = {**self._fields, **fields}
        # The thread writes the same fields again in two seconds.
        with suppress(redis.RedisError):
            self._write()

    def watch_jvm(self, ask: Callable[[], str]) -> None:
        """Call `ask`, which queries the JVM for its phase, every two seconds from now on.

        A daemon thread: a call that a hung JVM never answers does not keep the process from ending.
        """
        threading.Thread(target=self._ask, args=(ask,), name="jvm", daemon=True).start()

    def _ask(self, ask: Callable[[], str]) -> None:
        while not self._stopped.wait(BEAT_SECONDS):
            try:
                phase = ask()
            except Exception as error:  # noqa: BLE001 - a JVM that refuses has not answered
                logger.warning("the JVM did not answer: %s", error)
                continue
            self.update(jvm_ms=_now_ms(), phase=phase[:100])

    def _run(self) -> None:
        while not self._stopped.wait(BEAT_SECONDS):
            self.update()

    def _write(self) -> None:
        pipe = self._client.pipeline()
        fields: dict[Any, Any] = {**self._fields, "beat_ms": _now_ms()}
        pipe.hset(self._key, mapping=fields)
        pipe.expire(self._key, EXPIRES_SECONDS)
        pipe.execute()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
