"""Taking in what attached jobs report: idempotent, bounded, per owner; forgetting it."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.errors import Busy, Conflict, Forbidden
from controlplane.integrations import attached_jobs
from controlplane.integrations.attached_list import (
    LOST_AFTER,
    JobFilters,
    job_by_id,
    jobs_listing,
    progress_of,
    run_row,
)
from controlplane.integrations.attached_reports import ReportIn
from controlplane.models import AttachedJob, AttachedProgress, AttachedQuery, AuditEntry
from tests.support import cluster as made
from tests.support.attached import JOB, RUN, event, message, progress_event, run_number
from workers.tasks import prune as prune_task


def told(by: Actor, *events: dict[str, Any], **more: Any) -> AttachedJob:
    """Report events in one message."""
    return attached_jobs.report(by, ReportIn.model_validate(message(*events, **more)))


def now() -> datetime:
    return timezone.now().astimezone(UTC)


def run(number: str = RUN) -> AttachedQuery:
    return AttachedQuery.objects.get(run_id=number)


def contents() -> list[Any]:
    """Return all rows but for the moments of the messages."""
    jobs = AttachedJob.objects.values("owner", "application", "name", "ended_at", "dropped")
    return [*jobs, *AttachedQuery.objects.values(), *AttachedProgress.objects.values()]


def test_a_progress_is_stored_with_its_measures(viewer: Actor) -> None:
    told(viewer, event("started", now()), progress_event(0, now()), progress_event(1, now()))
    found = run()
    assert (found.state, found.last_batch, found.name) == ("running", 1, "counts")
    assert [source["rows"] for source in found.sources] == [40, 10]
    row = AttachedProgress.objects.get(batch=1).values
    assert (row["input"], row["processed"], row["duration_ms"]) == (25.0, 100.0, 500)
    assert (row["state_rows"], row["state_bytes"], row["state_dropped"]) == (60, 5280, 2)
    assert row["lags"] == [12.0, None]
    assert row["t"] - row["watermark_ms"] == 4000
    assert found.last == row


def test_the_same_report_again_changes_nothing(viewer: Actor) -> None:
    """The client sends again when an answer was lost."""
    at = now()
    events = [event("started", at), progress_event(0, at), event("terminated", at, error="no")]
    told(viewer, *events)
    before = contents()
    told(viewer, *events)
    assert contents() == before


def test_a_batch_told_twice_in_one_report_is_one_row(viewer: Actor) -> None:
    told(viewer, progress_event(0, now()), progress_event(0, now()))
    assert AttachedProgress.objects.count() == 1


def test_states_follow_the_events(viewer: Actor) -> None:
    at = now() - timedelta(minutes=1)
    seen = []
    for second, kind in enumerate(["started", "idle", "started", "terminated"]):
        told(viewer, event(kind, at + timedelta(seconds=second)))
        seen.append(run().state)
    assert seen == ["running", "idle", "running", "terminated"]


def test_an_older_event_does_not_turn_a_state_back(viewer: Actor) -> None:
    """Messages of two listeners of one job may cross."""
    at = now() - timedelta(minutes=1)
    told(viewer, progress_event(5, at))
    told(viewer, event("idle", at - timedelta(seconds=9)), progress_event(4, at))
    assert (run().state, run().last_batch, run().last["batch"]) == ("running", 5, 5)
    assert AttachedProgress.objects.count() == 2


def test_a_failure_keeps_its_reason_whatever_comes_later(viewer: Actor) -> None:
    told(viewer, event("terminated", now(), error="ZeroDivisionError"))
    told(viewer, event("idle", now()), event("terminated", now(), error=""))
    assert (run().state, run().detail) == ("failed", "ZeroDivisionError")


def test_a_job_that_is_over_runs_no_query(viewer: Actor) -> None:
    """A script that ends without stopping its queries never hears of their end."""
    told(viewer, progress_event(0, now()))
    job = told(viewer, progress_event(1, now()), ended=True)
    assert (run().state, run().last_batch, run().detail != "") == ("terminated", 1, True)
    assert job.ended_at is not None
    assert run().ended_at is not None


def test_a_job_that_reports_again_is_not_over(viewer: Actor) -> None:
    told(viewer, ended=True)
    assert told(viewer).ended_at is None


def test_a_clock_that_is_ahead_counts_as_now(viewer: Actor) -> None:
    """Rows of next year would never be forgotten."""
    told(viewer, progress_event(0, now() + timedelta(days=400)))
    assert AttachedProgress.objects.get().t <= now()
    assert run().state_at <= now()


def test_progress_older_than_what_is_kept_is_not_stored(viewer: Actor) -> None:
    told(viewer, progress_event(0, now() - attached_jobs.KEPT - timedelta(minutes=1)))
    assert not AttachedProgress.objects.exists()
    assert run().last_batch == 0


def test_nobody_writes_the_rows_of_another_user(viewer: Actor, operator: Actor) -> None:
    """An application id is not a secret."""
    told(viewer, progress_event(0, now()))
    told(operator, event("terminated", now(), error="forged"), ended=True)
    mine = AttachedJob.objects.get(owner=viewer.name)
    assert mine.ended_at is None
    assert mine.queries.get().state == "running"


def test_who_may_not_see_may_not_report(db: None, redis_url: str) -> None:
    with pytest.raises(Forbidden):
        told(made.actor(""))
    assert not AttachedJob.objects.exists()


def test_the_first_report_is_in_the_audit_log_and_no_other(viewer: Actor) -> None:
    told(viewer)
    told(viewer, progress_event(0, now()))
    assert list(AuditEntry.objects.values_list("action", "actor")) == [
        ("attached.first_report", viewer.name)
    ]


def test_a_user_has_a_bounded_number_of_jobs(
    viewer: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that have been silent longest make room."""
    monkeypatch.setattr(attached_jobs, "MAX_JOBS", 3)
    for number in range(5):
        told(viewer, job=JOB | {"application": f"local-{number}"})
    found = AttachedJob.objects.values_list("application", flat=True)
    assert sorted(found) == ["local-2", "local-3", "local-4"]


def test_a_job_has_a_bounded_number_of_runs(viewer: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that have ended make room; a job cannot have more open ones than the bound."""
    monkeypatch.setattr(attached_jobs, "MAX_RUNS", 2)
    told(viewer, event("terminated", now(), run_number(1), error=""))
    told(viewer, event("started", now(), run_number(2)))
    told(viewer, event("started", now(), run_number(3)))
    assert sorted(AttachedQuery.objects.values_list("run_id", flat=True)) == [
        UUID(int=2),
        UUID(int=3),
    ]
    with pytest.raises(Conflict):
        told(viewer, event("started", now(), run_number(4)))
    assert AttachedQuery.objects.count() == 2


def test_lost_is_derived_from_silence(viewer: Actor) -> None:
    """Nothing is written: a job that comes back is what it was."""
    job = told(
        viewer, progress_event(0, now()), event("terminated", now(), run_number(9), error="")
    )
    late = job.last_seen + LOST_AFTER + timedelta(seconds=1)
    assert run_row(run(), job, job.last_seen).state == "running"
    assert run_row(run(), job, late).state == "lost"
    assert run_row(run(run_number(9)), job, late).state == "terminated"
    AttachedJob.objects.update(last_seen=job.last_seen - LOST_AFTER * 2)
    row = jobs_listing(JobFilters()).page.rows[0]
    assert (row.state, row.total) == ("lost", 2)
    told(viewer)
    assert jobs_listing(JobFilters()).page.rows[0].state == "running"


def test_an_operator_removes_a_job_with_all_it_told(operator: Actor, viewer: Actor) -> None:
    job = told(viewer, progress_event(0, now()))
    attached_jobs.remove(operator, job_by_id(job.pk))
    assert contents() == []
    assert AuditEntry.objects.filter(action="attached.remove", actor=operator.name).count() == 1


def minutes_of(viewer: Actor, moment: datetime, slow: int) -> None:
    """Report ten batches of one minute, one of them slow."""
    told(
        viewer,
        *[
            progress_event(
                batch, moment + timedelta(seconds=batch),
                batchDuration=9000 if batch == slow else 500,
                durationMs={"addBatch": 8999 if batch == slow else 499},
            )
            for batch in range(10)
        ],
    )  # fmt: skip


def test_old_progress_is_one_row_a_minute_that_hides_no_peak(viewer: Actor) -> None:
    moment = (now() - timedelta(hours=1)).replace(second=20, microsecond=0)
    minutes_of(viewer, moment, slow=4)
    told(viewer, progress_event(100, now()), progress_event(101, now()))
    attached_jobs.prune(now())
    rows = progress_of(run(), moment - timedelta(minutes=1), now())
    assert [row["batch"] for row in rows] == [9, 100, 101]
    assert rows[0]["duration_ms"] == 9000
    assert rows[0]["phases"] == {"addBatch": 8999}
    assert (rows[0]["rows"], rows[0]["input"]) == (500, 25.0)


def test_thinning_out_twice_changes_nothing(viewer: Actor) -> None:
    minutes_of(viewer, (now() - timedelta(hours=1)).replace(second=20), slow=1)
    attached_jobs.prune(now())
    before = contents()
    assert attached_jobs.thin_out(now()) == 0
    assert contents() == before


def test_progress_and_jobs_leave_when_their_time_is_over(viewer: Actor) -> None:
    """By the task that keeps the database small."""
    told(viewer, progress_event(0, now() - attached_jobs.KEPT + timedelta(minutes=1)))
    AttachedProgress.objects.update(t=now() - attached_jobs.KEPT - timedelta(minutes=1))
    prune_task()
    assert not AttachedProgress.objects.exists()
    assert AttachedJob.objects.count() == 1
    AttachedJob.objects.update(last_seen=now() - attached_jobs.JOBS_KEPT - timedelta(hours=1))
    prune_task()
    assert not AttachedJob.objects.exists()


def test_a_run_keeps_a_bounded_number_of_rows(
    viewer: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever its trigger: the newest stay."""
    monkeypatch.setattr(attached_jobs, "MAX_ROWS", 3)
    told(viewer, *[progress_event(batch, now()) for batch in range(6)])
    attached_jobs.prune(now())
    assert sorted(AttachedProgress.objects.values_list("batch", flat=True)) == [3, 4, 5]


def test_reports_of_many_jobs_fill_neither_tables_nor_the_audit_log(viewer: Actor) -> None:
    """Beyond the limit of an hour they are refused; entries are few, with the number of jobs."""
    refused = 0
    for number in range(400):
        try:
            told(viewer, job=JOB | {"application": f"local-{number}"})
        except Busy:
            refused += 1
    assert AttachedJob.objects.count() == attached_jobs.MAX_NEW_JOBS == 400 - refused
    entries = AuditEntry.objects.filter(action="attached.first_report").order_by("pk")
    assert [entry.after["new_in_hour"] for entry in entries] == [*range(1, 11), 20, 30, 40, 50, 60]


def test_an_hour_has_a_bounded_number_of_events(
    viewer: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of all jobs of a user together; in the next hour they are stored again."""
    monkeypatch.setattr(attached_jobs, "MAX_EVENTS", 3)
    told(viewer, progress_event(0, now()), progress_event(1, now()))
    other = JOB | {"application": "local-other"}
    told(viewer, progress_event(0, now(), run_number(2)), job=other)
    with pytest.raises(Busy, match="At most 3 events"):
        told(viewer, progress_event(2, now()))
    assert AttachedProgress.objects.count() == 3
    AttachedJob.objects.update(hour=now() - timedelta(hours=2))
    told(viewer, progress_event(2, now()))
    assert AttachedProgress.objects.count() == 4


def test_the_rows_of_a_user_are_bounded(viewer: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attached_jobs, "MAX_ROWS_OF_USER", 2)
    told(viewer, *(progress_event(batch, now()) for batch in range(5)))
    attached_jobs.prune(timezone.now())
    assert AttachedProgress.objects.count() == 2
