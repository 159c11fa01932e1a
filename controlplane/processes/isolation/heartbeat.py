"""Heartbeats of a computation in its row, which also show whether its result is still wanted."""

import logging
import time
from collections.abc import Callable
from typing import Any, Final

from django.db import OperationalError, close_old_connections
from django.db.models import QuerySet
from django.utils import timezone

logger = logging.getLogger(__name__)

# The interval of heartbeats; progress is written as often as it changes.
BEAT_S: Final = 1.0


class Heartbeat:
    """Writes progress and heartbeat; a call returns False if the row is no longer the worker's.

    `rows`: the row while the worker owns it, by its columns progress and beat_at. `passed`: called
    with each share that was written.
    """

    def __init__(
        self, rows: Callable[[], QuerySet[Any]], passed: Callable[[float], None] = lambda _: None
    ) -> None:
        self._rows = rows
        self._passed = passed
        self._share = 0.0
        self._beat_at = time.monotonic()

    def __call__(self, share: float) -> bool:
        """Write what is due, and return whether the result is still wanted."""
        now = time.monotonic()
        try:
            if share == self._share and now - self._beat_at < BEAT_S:
                return self._rows().exists()
            wanted = self._rows().update(progress=share, beat_at=timezone.now()) == 1
        except OperationalError:
            # A locked or restarting database must not end an hour's work: the next heartbeat uses
            # a new connection.
            logger.warning("A heartbeat could not be saved", exc_info=True)
            close_old_connections()
            return True
        self._beat_at = now
        if share != self._share:
            self._share = share
            self._passed(share)
        return wanted
