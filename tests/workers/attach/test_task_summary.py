"""How a batch is spread over its partitions; `test_real_job.py` has Spark's answers."""

import json
import threading
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.support.attached import event, progress_event, receiving, run_number
from tests.workers.attach.test_attachment import session
from tests.workers.attach.test_reporter import reporter
from workers.attach import task_summary
from workers.attach.task_summary import MOST_RUNS, TaskSummaries, largest_shuffle

AT = datetime(2026, 1, 2, tzinfo=UTC)
SUMMARY = {"partitions": 4, "records": 9, "median_records": 1, "ms": 20, "median_ms": 10}


def tasks_of(summaries: TaskSummaries, event: dict[str, Any]) -> Any:
    """Return the summary that an event is given."""
    return json.loads(summaries(json.dumps(event))).get("progress", {}).get("tasks")


def test_a_run_is_looked_at_once_in_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    summaries = TaskSummaries(lambda _: SUMMARY)
    told = [tasks_of(summaries, progress_event(batch, AT)) for batch in range(3)]
    assert told == [SUMMARY, None, None]
    assert tasks_of(summaries, progress_event(0, AT, run=run_number(1))) == SUMMARY
    monkeypatch.setattr(task_summary, "EVERY_SECONDS", 0.0)
    assert tasks_of(summaries, progress_event(3, AT)) == SUMMARY


def test_other_events_cause_no_look() -> None:
    looked: list[str] = []
    assert tasks_of(TaskSummaries(looked.append), event("idle", AT)) is None
    assert looked == []


def test_a_job_of_many_runs_causes_few_looks() -> None:
    looked: list[str] = []
    summaries = TaskSummaries(looked.append)
    for number in range(MOST_RUNS + 5):
        tasks_of(summaries, progress_event(0, AT, run=run_number(number)))
    assert len(looked) == MOST_RUNS


def test_a_session_without_the_interface_reports_its_progress_without() -> None:
    """Spark Connect has no context, and an ended one no JVM."""
    summaries = TaskSummaries(lambda run: largest_shuffle(session(), run))
    text = json.dumps(progress_event(0, AT))
    assert summaries(text) == text


def test_a_run_without_a_shuffle_is_reported_without_the_field() -> None:
    """An older Weir refuses a field that it does not know."""
    text = json.dumps(progress_event(0, AT))
    assert TaskSummaries(lambda _: None)(text) == text


def test_the_reporting_thread_looks_and_not_the_caller() -> None:
    threads: list[str] = []

    def look(text: str) -> str:
        threads.append(threading.current_thread().name)
        return text

    with receiving() as weir:
        job = reporter(weir.url, complete=look)
        job.start()
        job.put(progress_event(0, AT))
        weir.wait_for_events(1)
        job.close(5, ended=False)
    assert threads == ["weir-attach"]


def test_a_job_that_ends_is_not_asked() -> None:
    """Its JVM may be ending, too."""
    looked: list[str] = []

    def look(text: str) -> str:
        looked.append(text)
        return text

    with receiving() as weir:
        job = reporter(weir.url, complete=look)
        job.put(progress_event(0, AT))
        job.wind_up(ended=True)
        job.start()
        weir.wait_for_events(1)
        job.close(5, ended=True)
    assert looked == []


def test_a_job_that_ends_during_a_look_is_not_asked_again() -> None:
    looked: list[str] = []

    def look(text: str) -> str:
        looked.append(text)
        job.wind_up(ended=True)
        return text

    with receiving() as weir:
        job = reporter(weir.url, complete=look)
        for batch in range(3):
            job.put(progress_event(batch, AT))
        job.start()
        weir.wait_for_events(3)
        job.close(5, ended=True)
    assert [json.loads(text)["progress"]["batch"] for text in looked] == [2]
