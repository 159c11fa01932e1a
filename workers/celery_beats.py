"""Heartbeats of Celery's workers and of its beat."""

import logging
import time
from collections.abc import Sequence
from functools import cache
from threading import Event, Thread
from typing import Any, Final

from celery import bootsteps
from celery.beat import PersistentScheduler
from celery.concurrency.solo import TaskPool as SoloPool
from django.conf import settings
from django.db import DatabaseError, close_old_connections
from django.db.models import QuerySet
from redis.exceptions import RedisError

from controlplane.events.task_names import (
    OF_CLUSTERS,
    RECONCILE_EXECUTIONS,
    SEAL_AUDIT,
    SEND_DUE_WEBHOOKS,
    queue_key,
)
from controlplane.plans.proposal_states import APPROVED
from controlplane.processes.runtime.beats import beat
from controlplane.processes.runtime.leases import Leases, holder_of
from controlplane.processes.runtime.process_kinds import BEAT, PERIOD_S, PROCESSES
from controlplane.wire.redis_clients import connect

# Periodic tasks that wait in a queue, at most: without a worker they would fill Redis.
MOST_WAITING: Final = 500
# Tasks due within this time are sent together (s). Celery's own pause ends 10 ms before a task is
# due, and it would then poll until it is.
TOGETHER_S: Final = 0.1
# The interval of tasks that have no work (s): deleted rows may have left some.
QUIET_S: Final = 60.0
logger = logging.getLogger(__name__)


class WorkerHeartbeat(bootsteps.StartStopStep):
    """A step of a worker's consumer: heartbeats of the kinds whose queues it serves.

    The event loop writes them, so they stop if the loop hangs. A solo pool executes its tasks in
    the loop, for hours in the Lab, so a thread writes them there.
    """

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def __init__(self, consumer: Any, **options: Any) -> None:
        super().__init__(consumer, **options)
        self._entry: Any = None
        self._ended = Event()

    def start(self, consumer: Any) -> None:
        """Start heartbeats; called again after each loss of the broker."""
        served = set(consumer.app.amqp.queues.consume_from)
        kinds = [kind.name for kind in PROCESSES if kind.queue in served]
        client = connect(settings.REDIS_URL)
        if isinstance(consumer.pool, SoloPool):
            self._ended = Event()
            arguments = (self._ended, client, kinds, consumer.hostname)
            Thread(target=_beat_until, args=arguments, daemon=True).start()
            return
        _beat_kinds(client, kinds, consumer.hostname)
        self._entry = consumer.timer.call_repeatedly(
            PERIOD_S, _beat_kinds, (client, kinds, consumer.hostname)
        )

    def stop(self, consumer: Any) -> None:
        """Stop heartbeats."""
        self._ended.set()
        if self._entry is not None:
            consumer.timer.cancel(self._entry)
            self._entry = None


class BeatingScheduler(PersistentScheduler):
    """Celery's scheduler with a heartbeat, which sends nothing to a queue that nobody serves.

    A task without work is sent once a minute.
    One of several schedulers, the holder of a lease, sends tasks; the others wait.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._client = connect(settings.REDIS_URL)
        self._leases = Leases(settings.REDIS_URL, BEAT.name, holder_of(settings.DATA_DIR))
        self._beat_at = float("-inf")
        self._sent_at: dict[str, float] = {}
        super().__init__(*arguments, **options)

    def tick(self, *arguments: Any, **options: Any) -> float:
        """Send at most one due task, beat, and return the pause before the next tick (s)."""
        now = time.monotonic()
        if now - self._beat_at >= PERIOD_S:
            self._beat_at = now
            self._leases.step([BEAT.name])
            _beat_kinds(self._client, [BEAT.name], self._leases.holder)
        if BEAT.name not in self._leases.held():
            return PERIOD_S
        pause: float = super().tick(*arguments, **options)
        return min(pause + TOGETHER_S, PERIOD_S) if pause else 0.0

    def schedules_equal(self, *_: Any) -> bool:
        """Return True: nothing changes the schedule, which Celery would compare in each tick."""
        return True

    def close(self) -> None:
        """Store the schedule, and release the lease, so that another scheduler continues."""
        super().close()
        self._leases.leave()

    def apply_async(self, entry: Any, *arguments: Any, **options: Any) -> Any:
        """Send a task; skip it if it has no work, or `MOST_WAITING` tasks wait in its queue."""
        now = time.monotonic()
        is_quiet = now - self._sent_at.get(entry.task, float("-inf")) < QUIET_S
        if is_quiet and not _has_work(entry.task):
            return None
        self._sent_at[entry.task] = now
        queue = self.app.amqp.router.route({}, entry.task)["queue"].name
        try:
            waiting = int(self._client.llen(queue_key(queue)))
        except RedisError:
            waiting = 0
        if waiting >= MOST_WAITING:
            logger.warning("%d tasks wait in the queue %s; %s skipped", waiting, queue, entry.task)
            return None
        return super().apply_async(entry, *arguments, **options)


@cache
def _work() -> dict[str, QuerySet[Any]]:
    """Return the rows without which a periodic task has nothing to do, by its name."""
    # Models need the set-up of Django.
    from controlplane.models import AuditEntry, Cluster, Delivery, Proposal  # noqa: PLC0415

    return {
        **dict.fromkeys(OF_CLUSTERS, Cluster.objects.all()),
        RECONCILE_EXECUTIONS: Proposal.objects.filter(state__in=APPROVED),
        SEND_DUE_WEBHOOKS: Delivery.objects.filter(state=Delivery.State.WAITING),
        SEAL_AUDIT: AuditEntry.objects.filter(sequence=None),
    }


def _has_work(task: str) -> bool:
    """Return whether a periodic task has work, True if that is unknown."""
    rows = _work().get(task)
    try:
        # After a restart of the database the connection is dead.
        close_old_connections()
        return rows is None or rows.exists()
    except DatabaseError:
        return True


def _beat_until(ended: Event, client: Any, kinds: Sequence[str], instance: str) -> None:
    _beat_kinds(client, kinds, instance)
    while not ended.wait(PERIOD_S):
        _beat_kinds(client, kinds, instance)


def _beat_kinds(client: Any, kinds: Sequence[str], instance: str) -> None:
    try:
        for kind in kinds:
            beat(client, kind, instance)
    except RedisError as error:
        logger.warning("Redis rejects the heartbeat: %s", error)
