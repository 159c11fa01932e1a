"""Execution of a run in a child process, claimed once; runs of lost workers are queued."""

import logging
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import F, QuerySet
from django.utils import timezone

from algorithms.errors import PlanningError
from algorithms.lab.experiments import Table, experiment
from controlplane.child_processes.errors import ChildDied, Exhausted, Unwanted
from controlplane.events.task_names import RUN_LAB, send_on_commit
from controlplane.lab.arrival import ArrivedRows
from controlplane.lab.engines import HERE, Engine, EngineUnavailable, Sweep, engine_of
from controlplane.models import LabRun
from controlplane.processes.isolation.child import Reporter, run_in_child
from controlplane.processes.isolation.heartbeat import Heartbeat
from controlplane.processes.isolation.limits import lab_limits

logger = logging.getLogger(__name__)

Stopping = Callable[[], bool]
# The columns of a run whose computation starts again.
_NOTHING_YET: Final[dict[str, Any]] = {"progress": 0.0, "table": {}, "timings": {}}


class WorkerStops(Exception):
    """The worker shuts down; the run stays queued for the next worker."""


def run(
    run_id: int, stopping: Stopping = lambda: False, engines: Mapping[str, Engine] = HERE
) -> None:
    """Execute a queued run until it is done or failed, unless it is deleted or claimed.

    `engines`: those of this worker, by name. `stopping` returns True if the worker shuts down: the
    run then returns to the queue. A run that exceeds its limits of memory or time fails, and is not
    repeated.
    """
    claimed = _claimed(run_id)
    if claimed is None:
        return
    try:
        table, timings = _executed(claimed, stopping, engines)
        _finish(claimed, LabRun.State.DONE, progress=1.0, table=table.to_json(), timings=timings)
    except Unwanted:
        return
    except WorkerStops:
        _ours(claimed).update(state=LabRun.State.QUEUED, attempts=F("attempts") - 1, **_NOTHING_YET)
    except PlanningError as impossible:
        _fail(claimed, "impossible", str(impossible))
    except EngineUnavailable as missing:
        _fail(claimed, "no_engine", str(missing))
    except (Exhausted, ChildDied) as ended:
        logger.warning("%s: %s", claimed, ended)
        _fail(claimed, ended.code, str(ended))
    except Exception:
        _fail(claimed, "broken", "The experiment broke; see the worker's log")
        raise


def _claimed(run_id: int) -> LabRun | None:
    """Return the run if this worker has claimed it."""
    now = timezone.now()
    changed = LabRun.objects.filter(pk=run_id, state=LabRun.State.QUEUED).update(
        state=LabRun.State.RUNNING,
        attempts=F("attempts") + 1,
        started_at=now,
        beat_at=now,
        **_NOTHING_YET,
    )
    return LabRun.objects.filter(pk=run_id).first() if changed == 1 else None


def _executed(
    claimed: LabRun, stopping: Stopping, engines: Mapping[str, Engine]
) -> tuple[Table, dict[str, float]]:
    """Return the table of a run and the seconds of each series."""
    sweep = sweep_of(claimed)
    compute = engine_of(sweep, engines)
    heartbeat = Heartbeat(lambda: _ours(claimed))
    arrived = ArrivedRows(lambda: _ours(claimed), sweep.experiment.columns)

    def watch(share: float) -> bool:
        if stopping():
            raise WorkerStops
        arrived.write_due()
        return heartbeat(share)

    def computed(reporter: Reporter) -> Table:
        return compute(sweep, reporter, reporter.emit)

    table = run_in_child(computed, lab_limits(), watch, arrived.add)
    return table, arrived.timings


def sweep_of(run: LabRun) -> Sweep:
    """Return the points of a run. Raises `PlanningError` if its experiment has changed."""
    chosen = experiment(run.planner, run.experiment)
    parameters = chosen.parameters.from_mapping(run.parameters)
    return Sweep(chosen, parameters, tuple(run.values), tuple(run.series), run.master)


def _fail(claimed: LabRun, code: str, message: str) -> None:
    _finish(claimed, LabRun.State.FAILED, error_code=code, error=message)


def _finish(claimed: LabRun, state: LabRun.State, **columns: Any) -> None:
    _ours(claimed).update(state=state, finished_at=timezone.now(), **columns)


def _ours(claimed: LabRun) -> QuerySet[LabRun]:
    """Return the row while this worker owns the attempt."""
    return LabRun.objects.filter(
        pk=claimed.pk, state=LabRun.State.RUNNING, attempts=claimed.attempts
    )


# The worker writes a heartbeat every second, whatever its child does; a database may be locked.
LOST_AFTER = timedelta(minutes=1)
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
    lost.filter(attempts__lt=MAX_ATTEMPTS).update(state=LabRun.State.QUEUED, **_NOTHING_YET)
    lost.filter(attempts__gte=MAX_ATTEMPTS).update(
        state=LabRun.State.FAILED, finished_at=now, error_code="worker_lost",
        error=f"{MAX_ATTEMPTS} workers were lost while they executed it",
    )  # fmt: skip
