"""What attached jobs send to the API, and what everybody reads there."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client

from controlplane.access.roles import Actor
from controlplane.api.integrations.attached import MAX_BODY_BYTES
from controlplane.models import AttachedJob, AttachedProgress
from tests.controlplane.api.callers import scripted
from tests.support.attached import RUN, event, message, progress_event

pytestmark = pytest.mark.django_db(transaction=True)
EVENTS = "/api/v1/attached/events"
NOW = datetime.now(UTC)
TASKS = {"partitions": 4, "records": 9, "median_records": 1, "ms": 20, "median_ms": 10}
BAD = progress_event(0, NOW)


@pytest.fixture
def job(viewer: Actor) -> Client:
    """A job with a viewer's token; CSRF is checked as a real server does."""
    return scripted(viewer)


def post(client: Client, body: Any) -> Any:
    text = body if isinstance(body, str) else json.dumps(body)
    return client.post(EVENTS, text, content_type="application/json")


def test_events_are_taken_and_read_back(job: Client) -> None:
    # Read by default of the last 15 minutes, and this module may have been imported before.
    now = datetime.now(UTC)
    answer = post(job, message(event("started", now), progress_event(0, now)))
    assert (answer.status_code, answer.json()["taken"]) == (202, 2)
    listed = job.get("/api/v1/attached/jobs").json()
    assert (listed["total"], listed["jobs"][0]["state"]) == (1, "running")
    query = listed["jobs"][0]["queries"][0]
    one = job.get(f"/api/v1/attached/queries/{query['id']}").json()
    assert (one["run_id"], one["last"]["state_rows"]) == (RUN, 60)
    rows = job.get(f"/api/v1/attached/queries/{query['id']}/progress").json()
    assert [(row["batch"], row["lags"]) for row in rows] == [(0, [12.0, None])]


def test_a_resent_message_is_taken_and_stored_once(job: Client) -> None:
    for _ in range(3):
        assert post(job, message(progress_event(0, NOW))).status_code == 202
    assert AttachedProgress.objects.count() == 1


def test_secrets_of_an_older_client_are_neither_stored_nor_shown(job: Client) -> None:
    """A masked text is not longer than what the column holds."""
    url = "jdbc:postgresql://h/db?user=u&password=hunter2"
    source = {"description": url, "rows": 1}
    sink = {"description": "jdbc:sqlserver://h;password=hunter2", "rows": 1}
    progress = BAD["progress"] | {"sources": [source], "sink": sink}
    short = "https://" + "a@" * 96
    body = message(
        event("started", NOW) | {"name": f"copy of {url}"},
        BAD | {"progress": progress}, BAD | {"name": short},
        event("terminated", NOW) | {"error": f"cannot connect to {url}"},
    )  # fmt: skip
    body["job"]["name"] = "token=hunter2"
    assert post(job, body).status_code == 202
    row = AttachedJob.objects.get()
    kept = json.dumps(list(row.queries.values()), default=str) + row.name
    assert "hunter2" not in kept
    assert "jdbc:postgresql://h/db?user=u&password=***" in kept
    assert "hunter2" not in job.get("/api/v1/attached/jobs").content.decode()


def spoiled(**changed: Any) -> dict[str, Any]:
    return message(BAD | {"progress": BAD["progress"] | changed})


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "job"),
        ({"job": {"application": "", "name": "x"}}, "job.application"),
        (message({**event("started", NOW), "kind": "exploded"}), "events.0.kind"),
        (message({**event("started", NOW), "run": "no id"}), "events.0.run"),
        (message({**event("started", NOW), "at": "yesterday"}), "events.0.at"),
        (message({**event("started", NOW), "at": "2026-01-01T00:00:00"}), "events.0.at"),
        (message(event("progress", NOW)), "events.0"),
        (message(event("idle", NOW, progress=BAD["progress"])), "events.0"),
        (spoiled(batch=-1), "events.0.progress.batch"),
        (spoiled(batch=2**70), "events.0.progress.batch"),
        (spoiled(input_rate="fast"), "events.0.progress.input_rate"),
        (spoiled(phases={str(i): i for i in range(60)}), "events.0.progress.phases"),
        (spoiled(tasks=TASKS | {"records": -1}), "events.0.progress.tasks.records"),
        (spoiled(watermark="never"), "events.0.progress.watermark"),
        (message(*[event("idle", NOW)] * 501), "events"),
        (message(dropped=-1), "dropped"),
    ],
)
def test_a_faulty_report_is_told_by_field_and_leaves_nothing(
    job: Client, body: dict[str, Any], field: str
) -> None:
    answer = post(job, body)
    assert answer.status_code == 422
    assert list(answer.json()["fields"]) == [field]
    assert not AttachedJob.objects.exists()


@pytest.mark.parametrize(
    "body",
    [
        message({**event("started", NOW), "name": "a\0b"}),
        message({**event("started", NOW), "name": "half \ud800"}),
        message({**event("terminated", NOW), "error": "\0"}),
        spoiled(phases={"a\0b": 1}),
    ],
)
def test_what_no_database_keeps_is_refused(job: Client, body: dict[str, Any]) -> None:
    """As at every door (controlplane.formats.storable)."""
    assert post(job, body).status_code == 400
    assert not AttachedJob.objects.exists()


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
def test_a_number_that_is_none_is_refused(job: Client, number: str) -> None:
    """It could be stored, and would break every chart it is in."""
    text = json.dumps(spoiled(input_rate=4711.5)).replace("4711.5", number)
    assert post(job, text).status_code in (400, 422)
    assert not AttachedJob.objects.exists()


def test_what_is_too_large_is_refused_unread(job: Client) -> None:
    answer = post(job, "x" * (MAX_BODY_BYTES + 1))
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert post(job, "{").status_code == 400


def test_fields_that_are_not_declared_are_refused(job: Client) -> None:
    """In every part of a report: a typing error must not lose a value silently."""
    for body in (message(colour="blue"), message(event("started", NOW, mood="good"))):
        assert post(job, body).status_code == 422


def test_reading_what_is_not_there_is_a_404(job: Client) -> None:
    assert job.get("/api/v1/attached/queries/999").status_code == 404
    assert job.get("/api/v1/attached/queries/999/progress").status_code == 404


def test_only_an_operator_removes_a_job(job: Client, operator: Actor) -> None:
    number = post(job, message()).json()["job"]
    assert job.delete(f"/api/v1/attached/jobs/{number}").status_code == 403
    script = scripted(operator)
    assert script.delete(f"/api/v1/attached/jobs/{number}").status_code == 204
    assert script.delete(f"/api/v1/attached/jobs/{number}").status_code == 404
