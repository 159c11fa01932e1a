"""Attached jobs: storage of their reports, retention of their progress, and removal.

A report requires the role viewer: a job of another team then carries a
token that can read Weir and write nothing but rows of its own. Rows belong to the token's user;
nobody else's report reaches them.

Of progress one row per minute stays after 15 minutes, then none. It has the mean of the rates, the
duration and phases of the slowest batch (a chart must not hide a peak), the newest of all other
values.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Count, Sum
from django.utils import timezone

from controlplane.access import audit
from controlplane.access.roles import Actor, require_operator, require_viewer
from controlplane.errors import Busy, Conflict
from controlplane.integrations.attached_reports import EventIn, ReportIn
from controlplane.models import AttachedJob, AttachedProgress, AttachedQuery
from controlplane.pagination.chunks import chunks, delete_in_chunks

STARTED, PROGRESS, IDLE, TERMINATED = "started", "progress", "idle", "terminated"
# Metrics of the lag by the names that Spark's sources use; the first known one counts.
LAG_METRICS = {
    "maxOffsetsBehindLatest": "records",
    "numFilesOutstanding": "files",
    "numBytesOutstanding": "bytes",
}
_STATE_OF = {
    STARTED: AttachedQuery.State.RUNNING,
    PROGRESS: AttachedQuery.State.RUNNING,
    IDLE: AttachedQuery.State.IDLE,
}


def apply_event(
    run: AttachedQuery,
    kind: str,
    moment: datetime,
    name: str,
    progress: Mapping[str, Any] | None,
    error: str,
) -> None:
    """Apply an event to its run; older or repeated events change nothing."""
    run.name = name or run.name
    run.started_at = min(run.started_at, moment)
    if progress is not None:
        _apply_progress(run, progress, moment)
    if run.over:
        return
    if kind == TERMINATED:
        run.state = AttachedQuery.State.FAILED if error else AttachedQuery.State.TERMINATED
        run.state_at, run.ended_at, run.detail = moment, moment, error
    elif moment >= run.state_at:
        run.state, run.state_at = _STATE_OF[kind], moment


def progress_values(progress: Mapping[str, Any], moment: datetime) -> dict[str, Any]:
    """Return the values of `AttachedProgress` for a progress of the API."""
    state, watermark = progress.get("state"), progress.get("watermark")
    tasks = progress.get("tasks")
    return {
        "t": round(moment.timestamp() * 1000),
        "batch": progress["batch"],
        "rows": progress["rows"],
        "input": progress["input_rate"],
        "processed": progress["processed_rate"],
        "duration_ms": progress["duration_ms"],
        "phases": dict(progress["phases"]),
        "state_rows": state["rows"] if state else None,
        "state_bytes": state["bytes"] if state else None,
        "state_dropped": state["dropped"] if state else None,
        "state_updated": state["updated"] if state else None,
        "state_partitions": state["partitions"] if state else None,
        "watermark_ms": round(watermark.timestamp() * 1000) if watermark else None,
        "lags": [lag_of(source)[0] for source in progress["sources"]],
        **({"tasks": tasks} if tasks else {}),
    }


def lag_of(source: Mapping[str, Any]) -> tuple[float | None, str]:
    """Return the lag of a source with its unit, None if the source does not report it."""
    metrics = source.get("metrics") or {}
    for name, unit in LAG_METRICS.items():
        if name in metrics:
            return metrics[name], unit
    return None, ""


def measured(values: Mapping[str, Any]) -> datetime:
    """Return the moment of a row."""
    return datetime.fromtimestamp(values["t"] / 1000, UTC)


def _apply_progress(run: AttachedQuery, progress: Mapping[str, Any], moment: datetime) -> None:
    if run.last_batch is not None and progress["batch"] < run.last_batch:
        return
    run.last_batch, run.last_progress_at = progress["batch"], moment
    run.last = progress_values(progress, moment)
    run.sources = [dict(source) for source in progress["sources"]]
    run.sink = dict(progress["sink"])


# Retention of progress.
KEPT = timedelta(hours=24)
# Jobs of a user, and runs of a job, in the database.
MAX_JOBS = 200
MAX_RUNS = 200
# Of a user in an hour: new jobs, as a program that restarts every minute has, and stored events.
PERIOD = timedelta(hours=1)
MAX_NEW_JOBS = 60
MAX_EVENTS = 100_000
# New jobs of an hour with an entry in the audit log; then every tenth, with their number.
LOGGED = 10


@transaction.atomic
def report(actor: Actor, message: ReportIn) -> AttachedJob:
    """Store a report and return its job; idempotent.

    Raises `Forbidden`, `Conflict` where the job has more open runs than Weir keeps, `Busy` for more
    jobs or events than a user may report in an hour.
    """
    require_viewer(actor)
    now = timezone.now()
    job = _job_of(actor, message, now)
    _count_events(job, len(message.events), now)
    runs = _runs_of(job, message.events, now)
    rows: dict[tuple[UUID, int], Mapping[str, Any]] = {}
    for event in message.events:
        # Spark's clock is another machine's: a moment in the future becomes now.
        moment = min(event.at, now)
        progress = None if event.progress is None else event.progress.model_dump()
        apply_event(runs[event.run], event.kind, moment, event.name, progress, event.error)
        if progress is not None and moment > now - KEPT:
            rows[event.run, progress["batch"]] = progress_values(progress, moment)
    for run in runs.values():
        run.save()
    if message.ended:
        # The job may not have reported the end of its runs.
        end = {"state_at": now, "ended_at": now, "detail": "The job ended while it ran"}
        open_runs = job.queries.filter(ended_at=None)
        open_runs.update(state=AttachedQuery.State.TERMINATED, **end)
    _store(runs, rows)
    return job


@transaction.atomic
def remove(actor: Actor, job: AttachedJob) -> None:
    """Delete a job with its rows; its next report creates it again. Raises `Forbidden`."""
    require_operator(actor)
    before = {"owner": job.owner, "application": job.application, "queries": job.queries.count()}
    if AttachedJob.objects.filter(pk=job.pk).delete()[0]:
        audit.record(actor, "attached.remove", str(job), before=before)


def _job_of(actor: Actor, report: ReportIn, now: datetime) -> AttachedJob:
    """Return the updated job, locked so that its reports are stored one after the other."""
    jobs, new = AttachedJob.objects.filter(owner=actor.name), 0
    job = jobs.select_for_update().filter(application=report.job.application).first()
    if job is None:
        # The jobs with the oldest reports are deleted, so that one more is within the limit.
        new = jobs.filter(first_seen__gt=now - PERIOD).count() + 1
        if new > MAX_NEW_JOBS:
            raise _busy("too_many_jobs", f"{MAX_NEW_JOBS} new jobs")
        spare = jobs.order_by("-last_seen").values_list("pk", flat=True)[MAX_JOBS - 1 :]
        AttachedJob.objects.filter(pk__in=list(spare)).delete()
        job = AttachedJob(owner=actor.name, application=report.job.application, first_seen=now)
    job.name, job.spark_version = report.job.name, report.job.spark_version
    job.last_seen = now
    job.dropped = max(job.dropped, report.dropped)
    job.ended_at = (job.ended_at or now) if report.ended else None
    is_new = job.pk is None
    job.save()
    if is_new and (new <= LOGGED or new % LOGGED == 0):
        after = {"application": job.application, "spark": job.spark_version, "new_in_hour": new}
        audit.record(actor, "attached.first_report", str(job), after=after)
    return job


def _count_events(job: AttachedJob, events: int, now: datetime) -> None:
    """Count the events of a report. Raises `Busy` beyond the limit of the job's owner."""
    hour = now.replace(minute=0, second=0, microsecond=0)
    job.hour_events = events + (job.hour_events if job.hour == hour else 0)
    job.hour = hour
    job.save(update_fields=["hour", "hour_events"])
    of_owner = AttachedJob.objects.filter(owner=job.owner, hour=hour)
    if (of_owner.aggregate(total=Sum("hour_events"))["total"] or 0) > MAX_EVENTS:
        raise _busy("too_many_events", f"{MAX_EVENTS:,} events")


def _busy(code: str, limit: str) -> Busy:
    text = f"At most {limit} of a user are stored in an hour: report less often"
    return Busy(code, text, 600)


def _runs_of(
    job: AttachedJob, events: Sequence[EventIn], now: datetime
) -> dict[UUID, AttachedQuery]:
    """Return the run of every event, the unknown ones new."""
    wanted = {event.run: event for event in reversed(events)}
    runs = {run.run_id: run for run in job.queries.filter(run_id__in=wanted)}
    fresh = [event for run_id, event in wanted.items() if run_id not in runs]
    if fresh:
        _make_room_for_runs(job, len(fresh))
    for event in fresh:
        moment = min(event.at, now)
        times = {"started_at": moment, "state_at": moment}
        runs[event.run] = AttachedQuery(job=job, query_id=event.id, run_id=event.run, **times)
    return runs


def _make_room_for_runs(job: AttachedJob, count: int) -> None:
    excess = job.queries.count() + count - MAX_RUNS
    if excess <= 0:
        return
    over = job.queries.exclude(ended_at=None).order_by("ended_at")
    old = list(over.values_list("pk", flat=True)[:excess])
    if len(old) < excess:
        raise Conflict("too_many_runs", f"At most {MAX_RUNS} queries of a job are kept")
    AttachedQuery.objects.filter(pk__in=old).delete()


def _store(
    runs: Mapping[UUID, AttachedQuery], rows: Mapping[tuple[UUID, int], Mapping[str, Any]]
) -> None:
    AttachedProgress.objects.bulk_create(
        [
            AttachedProgress(query=runs[run], batch=batch, t=measured(values), values=dict(values))
            for (run, batch), values in rows.items()
        ],
        update_conflicts=True,
        unique_fields=["query", "batch"],
        update_fields=["t", "values"],
    )


# Retention of every batch; after it one row a minute.
WHOLE_FOR = timedelta(minutes=15)
# Jobs without a report for so long are deleted with their rows.
JOBS_KEPT = timedelta(days=7)
# Rows of a run: 15 minutes at ten batches a second, a day of minutes, and a reserve; of a user.
MAX_ROWS = 12_000
MAX_ROWS_OF_USER = 300_000
MEAN = ("input", "processed")
OF_SLOWEST = ("duration_ms", "phases")


def prune(now: datetime) -> None:
    """Delete expired rows, and merge older rows to one per minute."""
    AttachedJob.objects.filter(last_seen__lt=now - JOBS_KEPT).delete()
    delete_in_chunks(AttachedProgress.objects.filter(t__lt=now - KEPT))
    thin_out(now)
    _cap()


def thin_out(now: datetime) -> int:
    """Merge the rows of each minute that is old enough; return how many rows were deleted."""
    before = (now - WHOLE_FOR).replace(second=0, microsecond=0)
    old = AttachedProgress.objects.filter(t__lt=before).order_by("query_id", "t")
    keys = old.values_list("query_id", "t", "pk").iterator(chunk_size=2000)
    deleted = 0
    for pks in _crowded(keys):
        with transaction.atomic():
            rows = list(AttachedProgress.objects.filter(pk__in=pks).order_by("t"))
            keep = rows[-1]
            keep.values = merged([row.values for row in rows])
            keep.save(update_fields=["values"])
            others = AttachedProgress.objects.filter(pk__in=[row.pk for row in rows[:-1]])
            deleted += others.delete()[0]
    return deleted


def merged(values: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the merged values of several batches of one minute, given oldest first."""
    slowest = max(values, key=lambda sample: sample["duration_ms"])
    kept = dict(values[-1]) | {name: slowest[name] for name in OF_SLOWEST}
    for name in MEAN:
        known = [sample[name] for sample in values if sample[name] is not None]
        kept[name] = sum(known) / len(known) if known else None
    return kept | {"rows": sum(sample["rows"] for sample in values)}


def _crowded(keys: Iterator[tuple[int, datetime, int]]) -> list[list[int]]:
    """Return the ids of the rows of every run and minute that has more than one."""
    crowded = []
    for _, rows in groupby(keys, key=lambda key: (key[0], key[1].replace(second=0, microsecond=0))):
        pks = [pk for _, _, pk in rows]
        if len(pks) > 1:
            crowded.append(pks)
    return crowded


def _cap() -> None:
    for owner, most in (("query_id", MAX_ROWS), ("query__job__owner", MAX_ROWS_OF_USER)):
        rows = AttachedProgress.objects.order_by()
        crowded = rows.values(owner).annotate(count=Count("pk")).filter(count__gt=most)
        for value in list(crowded.values_list(owner, flat=True)):
            newest = rows.filter(**{owner: value}).order_by("-t")
            for pks in chunks(list(newest.values_list("pk", flat=True)[most:])):
                AttachedProgress.objects.filter(pk__in=pks).delete()
