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
from controlplane.results.database import results_cursor
from controlplane.sinks.follower import IDLE_S, SinkFollower

logger = logging.getLogger(__name__)
# Another process may take a sink over after this time without a renewal.
LEASE: Final = timedelta(seconds=8)
PERIOD_S: Final = 2.0
# How often changes of results are looked for (s).
NOTIFY_S: Final = 0.05


@dataclass
class SinkThread:
    """The thread of a sink of a cluster; `changed`: there may be results to write."""

    sink_id: int
    cluster: str
    ended: Event = field(default_factory=Event)
    changed: Event = field(default_factory=Event)
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
                follower.step(self._wait)
            except Sink.DoesNotExist:
                break
            except Exception:
                # The database of Weir is away.
                logger.exception("sink %d: the next attempt follows", self.sink_id)
                self.ended.wait(PERIOD_S)
        follower.close()
        connections.close_all()

    def end(self) -> None:
        """Let the thread end after its present batch."""
        self.ended.set()
        self.changed.set()

    def _wait(self, seconds: float) -> None:
        if seconds != IDLE_S:
            self.ended.wait(seconds)
        elif self.changed.wait(seconds):
            self.changed.clear()


class SinkProcess:
    """Starts and ends the threads of the sinks that this process holds."""

    def __init__(self) -> None:
        self._name = uuid.uuid4().hex
        self._threads: dict[int, SinkThread] = {}
        self._newest: dict[str, int] = {}

    @property
    def holds(self) -> bool:
        """Return whether this process holds sinks."""
        return bool(self._threads)

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
        for sink_id in self._threads.keys() - held.keys():
            self._threads.pop(sink_id).end()
        for sink_id, cluster in held.items():
            known = self._threads.get(sink_id)
            if known is None or not known.thread.is_alive():
                self._threads[sink_id] = SinkThread(sink_id, cluster)
                self._threads[sink_id].start()

    def notify(self) -> None:
        """Let the threads of clusters with changed results look for them at once."""
        if not self.holds:
            return
        try:
            with results_cursor() as cursor:
                cursor.execute("SELECT cluster, seq FROM results_cluster")
                newest: dict[str, int] = dict(cursor.fetchall())
        except DatabaseError:
            return
        for thread in self._threads.values():
            if newest.get(thread.cluster) != self._newest.get(thread.cluster):
                thread.changed.set()
        self._newest = newest

    def close(self) -> None:
        """End all threads after their present batch, and return the leases."""
        for thread in self._threads.values():
            thread.end()
        for thread in self._threads.values():
            thread.thread.join(PERIOD_S)
        Sink.objects.filter(holder=self._name).update(leased_until=None)

    def _claim(self, now: datetime) -> dict[int, str]:
        """Return the sinks that this process holds, with the slugs of their clusters."""
        if not Sink.objects.exists():
            return {}
        free = Q(leased_until=None) | Q(leased_until__lt=now) | Q(holder=self._name)
        rows = Sink.objects.filter(free)
        rows.update(holder=self._name, leased_until=now + LEASE)
        held = Sink.objects.filter(holder=self._name, leased_until__gt=now)
        return dict(held.values_list("pk", "query__cluster__slug"))
