"""The process of sinks: a thread per sink that it holds; a lease keeps other processes away."""

import logging
import uuid
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Event, Thread
from typing import Final

from django.db import DatabaseError, close_old_connections, connections
from django.db.models import Q
from django.utils import timezone

from controlplane.models import Sink
from controlplane.sinks.follower import SinkFollower

logger = logging.getLogger(__name__)
# Another process may take a sink over after this time without a renewal.
LEASE: Final = timedelta(seconds=8)
PERIOD_S: Final = 2.0


@dataclass
class SinkThread:
    """The thread of a sink."""

    sink_id: int
    ended: Event = field(default_factory=Event)
    thread: Thread = field(default_factory=Thread)

    def start(self) -> None:
        """Start to follow; the thread does not keep the process from ending."""
        self.thread = Thread(target=self._run, name=f"sink-{self.sink_id}", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        follower = SinkFollower(self.sink_id)
        while not self.ended.is_set():
            # After a restart of a database its connection is dead.
            close_old_connections()
            try:
                follower.step(self.ended.wait)
            except Sink.DoesNotExist:
                break
            except Exception:
                # The database of Weir is away.
                logger.exception("sink %d: the next attempt follows", self.sink_id)
                self.ended.wait(PERIOD_S)
        follower.close()
        connections.close_all()


class SinkProcess:
    """Starts and ends the threads of the sinks that this process holds."""

    def __init__(self) -> None:
        self._name = uuid.uuid4().hex
        self._threads: dict[int, SinkThread] = {}

    def step(self) -> None:
        """Renew the leases, take over sinks that nobody holds, and end threads of others."""
        close_old_connections()
        now = timezone.now()
        try:
            held = self._claim(now)
        except DatabaseError:
            # The threads wait for it, too.
            logger.warning("The leases of sinks could not be renewed", exc_info=True)
            return
        for sink_id in self._threads.keys() - held:
            self._threads.pop(sink_id).ended.set()
        for sink_id in held:
            known = self._threads.get(sink_id)
            if known is None or not known.thread.is_alive():
                self._threads[sink_id] = SinkThread(sink_id)
                self._threads[sink_id].start()

    def close(self) -> None:
        """End all threads after their present batch, and return the leases."""
        for thread in self._threads.values():
            thread.ended.set()
        for thread in self._threads.values():
            thread.thread.join(PERIOD_S)
        Sink.objects.filter(holder=self._name).update(leased_until=None)

    def _claim(self, now: datetime) -> set[int]:
        if not Sink.objects.exists():
            return set()
        free = Q(leased_until=None) | Q(leased_until__lt=now) | Q(holder=self._name)
        rows = Sink.objects.filter(free)
        rows.update(holder=self._name, leased_until=now + LEASE)
        held = Sink.objects.filter(holder=self._name, leased_until__gt=now)
        return set(held.values_list("pk", flat=True))
