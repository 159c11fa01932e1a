"""The process of sinks: a thread per sink that it holds; a lease keeps other processes away.

A thread follows its sink: it reads what is next, writes it, and stores counts and errors. An error
closes the destination, and the next attempt waits for twice as long. A sink that is away so holds
back nothing but itself.
"""

import logging
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Event, Thread
from typing import Any, Final

from django.db import DatabaseError, close_old_connections, connections
from django.db.models import F, Q
from django.utils import timezone

from controlplane.errors import WeirError
from controlplane.integrations.deliveries import retry_delay
from controlplane.models import RefusedResult, Sink
from controlplane.results.database import results_cursor
from controlplane.results.feed import FeedPlace
from controlplane.sinks.catalog import KINDS
from controlplane.sinks.columns import json_rows, result_table
from controlplane.sinks.destination import (
    Destination,
    DestinationAway,
    RefusedByDestination,
    SinkContext,
)
from controlplane.sinks.reading import ResultBatch, ResultReader, results_at
from controlplane.wire.errors import WireError

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


# Without results to write, the next look (s).
IDLE_S: Final = 1.0
# A kind that collects results looks this often (s), at most.
COLLECT_S: Final = 5.0
# The longest pause after errors: a destination that is back is written to soon.
LONGEST_S: Final = 60.0
# The sink waits while so many refused results are kept: none is deleted unseen.
MAX_REFUSED: Final = 1_000
# How often `caught_up_at` is stored without results.
_NOTED: Final = timedelta(seconds=3)
_ERROR: Final = 300


@dataclass
class SinkFollower:
    """Writes one sink; `opened`: the version of its row as it was opened."""

    sink_id: int
    opened: int = 0
    _sink: Sink = field(default_factory=Sink)
    _destination: Destination | None = None
    _reader: ResultReader | None = None
    # The position that was committed last, and the one up to which there was nothing to write.
    _position: FeedPlace = field(default_factory=lambda: FeedPlace(0, b""))
    _read: FeedPlace = field(default_factory=lambda: FeedPlace(0, b""))

    def step(self, wait: Callable[[float], object]) -> None:
        """Write the next batch if one is due, else wait; store errors."""
        sink = Sink.objects.select_related("query__cluster").get(pk=self.sink_id)
        if self._destination is None or sink.version != self.opened:
            self.close()
        self._sink = sink
        now = timezone.now()
        if sink.paused or (sink.retry_at is not None and sink.retry_at > now):
            wait(IDLE_S)
            return
        try:
            if pause_s := self._write_next():
                wait(pause_s)
        except Exception as error:  # noqa: BLE001 - whatever a destination causes is retried
            self._fail(error)

    def close(self) -> None:
        """Close the destination if it is open."""
        destination, self._destination = self._destination, None
        if destination is not None:
            with suppress(Exception):
                destination.close()

    def _open(self) -> tuple[Destination, ResultReader]:
        if self._destination is None or self._reader is None:
            sink, table = self._sink, result_table(self._sink.query)
            context = SinkContext(
                sink.query.cluster.slug, sink.name, str(sink.uid), sink.epoch, table
            )
            self._destination = KINDS[sink.kind].open(sink.settings, context)
            self._position = self._destination.position() or FeedPlace.read(sink.position)
            self._read = self._position
            self._reader, self.opened = ResultReader.of(sink, table), sink.version
        return self._destination, self._reader

    def _write_next(self) -> float:
        """Write the next results; return after which time (s) there may be more."""
        destination, reader = self._open()
        self._write_again(destination, reader)
        kind = KINDS[self._sink.kind]
        limit = int(self._sink.settings.get("batch", kind.batch))
        batch = reader.batch(self._read, limit)
        collect_s = self._collect_s() if batch.is_last and batch.rows else 0.0
        if collect_s:
            return collect_s
        if batch.rows:
            self._count(batch, self._deliver(destination, batch))
        else:
            self._note_idle(batch)
        return IDLE_S if batch.is_last else 0.0

    def _collect_s(self) -> float:
        """Return for how long (s) the kind collects results before it writes them."""
        every_s = KINDS[self._sink.kind].checked(self._sink.settings).model_dump().get("every_s", 0)
        since = max(filter(None, (self._sink.written_at, self._sink.caught_up_at)))
        left = since + timedelta(seconds=every_s) - timezone.now()
        return min(COLLECT_S, max(0.0, left.total_seconds()))

    def _deliver(self, destination: Destination, batch: ResultBatch) -> int:
        """Write a batch and keep the results that are refused; return how many were written."""
        written = len(batch.rows)
        try:
            destination.write(batch.rows, self._position, batch.position)
        except RefusedByDestination as refusal:
            if written > 1:
                return sum(self._deliver(destination, half) for half in batch.halves())
            written = 0
            self._refuse(batch, str(refusal))
            destination.write((), self._position, batch.position)
        self._position = self._read = batch.position
        return written

    def _refuse(self, batch: ResultBatch, reason: str) -> None:
        assert self._reader is not None
        kept = RefusedResult.objects.filter(sink=self.sink_id)
        if kept.count() >= MAX_REFUSED:
            text = f"{MAX_REFUSED:,} refused results are kept: write them again, or delete them"
            raise DestinationAway(text)
        (row,) = json_rows(self._reader.table.columns, batch.rows)
        _, is_new = kept.update_or_create(
            sink_id=self.sink_id, place=batch.place(0),
            defaults={"reason": _storable(reason), "row": row, "refused_at": timezone.now(),
                      "requested": False},
        )  # fmt: skip
        Sink.objects.filter(pk=self.sink_id).update(refused=F("refused") + int(is_new))

    def _write_again(self, destination: Destination, reader: ResultReader) -> None:
        """Write the refused results that someone requested, as they are now."""
        wanted = RefusedResult.objects.filter(sink=self.sink_id, requested=True)
        letters = {bytes(letter.place): letter for letter in wanted[:MAX_REFUSED]}
        stored = results_at(reader.query_id, list(letters))
        for place, result in stored:
            letter = letters.pop(place)
            try:
                destination.write(reader.table.rows(result), self._position, self._position)
                letter.delete()
            except RefusedByDestination as refusal:
                letter.reason, letter.requested = _storable(str(refusal)), False
                letter.save(update_fields=["reason", "requested"])
        for letter in letters.values():
            letter.reason, letter.requested = "Its window is not stored any more", False
            letter.save(update_fields=["reason", "requested"])

    def _count(self, batch: ResultBatch, written: int) -> None:
        now = timezone.now()
        values: dict[str, Any] = {
            "position": str(self._position), "written": F("written") + written,
            "corrected": F("corrected") + batch.corrected, "written_at": now,
        }  # fmt: skip
        self._store(values | ({"caught_up_at": now} if batch.is_last else {}))

    def _note_idle(self, batch: ResultBatch) -> None:
        self._read = batch.position
        now = timezone.now()
        if batch.corrected or self._sink.error or now - self._sink.caught_up_at > _NOTED:
            self._store({"caught_up_at": now, "corrected": F("corrected") + batch.corrected})

    def _store(self, values: dict[str, Any]) -> None:
        """Store values of the row, and that the sink works, unless someone changed it meanwhile."""
        works = {"error": "", "failures": 0, "failing_since": None, "retry_at": None}
        rows = Sink.objects.filter(pk=self.sink_id)
        if not rows.filter(version=self.opened).update(**values, **works):
            values.pop("position", None)
            rows.update(**values)

    def _fail(self, error: Exception) -> None:
        self.close()
        is_known = isinstance(error, DestinationAway | WeirError | WireError)
        text = str(error) if is_known else f"{type(error).__name__}: {error}"
        logger.warning("sink %d: %s", self.sink_id, text, exc_info=not is_known)
        now, failures = timezone.now(), self._sink.failures + 1
        delay = min(retry_delay(failures), timedelta(seconds=LONGEST_S))
        Sink.objects.filter(pk=self.sink_id, version=self._sink.version).update(
            error=_storable(text), failures=failures, retry_at=now + delay,
            failing_since=self._sink.failing_since or now,
        )  # fmt: skip


def _storable(text: str) -> str:
    # PostgreSQL stores no NUL.
    return text.replace("\0", "?")[:_ERROR]
