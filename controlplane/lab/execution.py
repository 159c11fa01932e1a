"""Execution of a run, claimed once, with reports of progress; runs of lost workers are queued."""

import logging
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.db import OperationalError, close_old_connections
from django.db.models import F, QuerySet
from django.utils import timezone

from algorithms.errors import PlanningError
from algorithms.experiments import Table, experiment
from algorithms.vocabulary import Progress
from controlplane.models import LabRun
from controlplane.task_names import RUN_LAB, send_on_commit

logger = logging.getLogger(__name__)

# Time between two writes of the progress.
PROGRESS_EVERY_S = 1.0

Stopping = Callable[[], bool]


class Unwanted(Exception):
    """The run was cancelled, deleted, or claimed by another worker."""


class WorkerStops(Exception):
    """The worker shuts down; the run stays queued for the next worker."""


def run(run_id: int, stopping: Stopping = lambda: False) -> None:
    """Execute a queued run until it is done or failed, unless it is deleted or claimed.

    `stopping` returns True if the worker shuts down: the run then returns to the queue.
    """
    claimed = _claimed(run_id)
    if claimed is None:
        return
    try:
        table = _executed(claimed, _progress_of(claimed, stopping))
        _finish(claimed, LabRun.State.DONE, progress=1.0, table=table.to_json())
    except Unwanted:
        return
    except WorkerStops:
        _ours(claimed).update(state=LabRun.State.QUEUED, progress=0.0)
    except PlanningError as impossible:
        _finish(claimed, LabRun.State.FAILED, error=str(impossible))
    except Exception:
        _finish(claimed, LabRun.State.FAILED, error="The experiment broke; see the worker's log")
        raise


def _claimed(run_id: int) -> LabRun | None:
    """Return the run if this worker has claimed it."""
    now = timezone.now()
    changed = LabRun.objects.filter(pk=run_id, state=LabRun.State.QUEUED).update(
        state=LabRun.State.RUNNING,
        attempts=F("attempts") + 1,
        started_at=now,
        beat_at=now,
        progress=0.0,
    )
    return LabRun.objects.filter(pk=run_id).first() if changed == 1 else None


def _executed(claimed: LabRun, progress: Progress) -> Table:
    chosen = experiment(claimed.planner, claimed.experiment)
    parameters = chosen.parameters.from_mapping(claimed.parameters)
    return chosen.run(parameters, claimed.values, claimed.series, progress)


def _progress_of(claimed: LabRun, stopping: Stopping) -> Progress:
    """Return the callback for the share done, which raises to stop the experiment."""
    reported_at = time.monotonic()

    def report(share: float) -> None:
        nonlocal reported_at
        if stopping():
            raise WorkerStops
        now = time.monotonic()
        if now - reported_at >= PROGRESS_EVERY_S:
            reported_at = now
            _beat(claimed, share)

    return report


def _beat(claimed: LabRun, share: float) -> None:
    try:
        wanted = _ours(claimed).update(progress=share, beat_at=timezone.now())
    except OperationalError:
        # A locked or restarting database must not end an hour's work: the next heartbeat uses a
        # new connection.
        logger.warning("The progress of %s could not be saved", claimed, exc_info=True)
        close_old_connections()
        return
    if wanted != 1:
        raise Unwanted


def _finish(claimed: LabRun, state: LabRun.State, **columns: Any) -> None:
    _ours(claimed).update(state=state, finished_at=timezone.now(), **columns)


def _ours(claimed: LabRun) -> QuerySet[LabRun]:
    """Return the row while this worker owns the attempt."""
    return LabRun.objects.filter(
        pk=claimed.pk, state=LabRun.State.RUNNING, attempts=claimed.attempts
    )


# Experiments report about once a second; a compiled step over a million queries, or a solver, may
# take a minute or two.
LOST_AFTER = timedelta(minutes=5)
# A run that has ended so many workers would end the next one, too.
MAX_ATTEMPTS = 3
# A message takes milliseconds: the message of a run that waits longer, with no other, is lost.
MESSAGE_LOST_AFTER = timedelta(seconds=10)
# Until the next message, so that messages do not accumulate without a worker.
MESSAGE_EXPIRES_S = 15.0


def requeue_lost(now: datetime) -> None:
    """Queue or fail the runs of lost workers, then send a task if runs are queued."""
    _give_up_lost(now)
    if LabRun.objects.filter(state=LabRun.State.RUNNING).exists():
        return
    waiting = LabRun.objects.filter(
        state=LabRun.State.QUEUED, requested_at__lt=now - MESSAGE_LOST_AFTER
    )
    oldest = waiting.order_by("requested_at", "pk").values_list("pk", flat=True).first()
    if oldest is not None:
        send_on_commit(RUN_LAB, oldest, expires_s=MESSAGE_EXPIRES_S)


def _give_up_lost(now: datetime) -> None:
    lost = LabRun.objects.filter(state=LabRun.State.RUNNING, beat_at__lt=now - LOST_AFTER)
    lost.filter(attempts__lt=MAX_ATTEMPTS).update(state=LabRun.State.QUEUED, progress=0.0)
    lost.filter(attempts__gte=MAX_ATTEMPTS).update(
        state=LabRun.State.FAILED, finished_at=now, error="The worker was lost; run it again"
    )
