"""The pages of attached jobs: who sees what, what is said when there is nothing, what it costs."""

import json
import re
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from controlplane.access.roles import Actor
from controlplane.integrations import attached_jobs
from controlplane.integrations.attached_list import LOST_AFTER, SHOWN_RUNS
from controlplane.integrations.attached_reports import ReportIn
from controlplane.models import AttachedJob, AttachedQuery
from tests.support.attached import JOB, event, message, progress_event, run_number

pytestmark = pytest.mark.nightly("pages")

PAGES = ["/attached/", "/attached/queries/{query}/", "/attached/queries/{query}/charts.json"]


def report(by: Actor, application: str = "local-1", runs: int = 1) -> None:
    """Report a job with runs of three batches each."""
    at = datetime.now(UTC) - timedelta(seconds=30)
    events = [
        progress_event(batch, at + timedelta(seconds=batch), run_number(run + 1))
        for run in range(runs)
        for batch in range(3)
    ]
    body = message(*events, job=JOB | {"application": application})
    attached_jobs.report(by, ReportIn.model_validate(body))


@pytest.fixture
def query(viewer: Actor) -> AttachedQuery:
    """A run with three batches."""
    report(viewer)
    return AttachedQuery.objects.get()


ABOUT = "/attached/queries/{query}/?part=about"


def test_an_empty_list_shows_the_two_lines_with_the_address(viewing: Client) -> None:
    content = viewing.get("/attached/", headers={"host": "localhost:8123"}).content.decode()
    assert "No job is attached yet" in content
    assert "from workers.attach import attach\n" in content
    assert 'attach(spark, "http://localhost:8123", token)' in content


def test_the_list_is_in_the_navigation(viewing: Client) -> None:
    content = viewing.get("/attached/").content.decode()
    assert '<a href="/attached/" aria-current="page">' in content


def test_the_list_tells_what_a_query_does(viewing: Client, query: AttachedQuery) -> None:
    content = viewing.get("/attached/").content.decode()
    assert f'href="/attached/queries/{query.pk}/" data-open>counts</a>' in content
    assert "nightly" in content
    assert "500 ms" in content
    assert "attach(spark," in content, "how to attach another one stays at hand"


def test_an_htmx_request_gets_the_fragment(viewing: Client, query: AttachedQuery) -> None:
    told = {PAGES[0]: b"counts", PAGES[1]: b"rows in batch 2", ABOUT: b"KafkaV2"}
    for path, said in told.items():
        part = viewing.get(path.format(query=query.pk), headers={"HX-Request": "true"}).content
        assert said in part
        assert b"<html" not in part


def test_a_query_shows_its_facts(viewing: Client, query: AttachedQuery) -> None:
    content = viewing.get(f"/attached/queries/{query.pk}/").content.decode()
    assert "read only" in content
    for said in (
        "KafkaV2[Subscribe[orders]]",
        "NoopTable",
        str(query.run_id),
        "4.0 s",
        "records",
    ):
        assert said in content, said


def test_a_lost_job_says_so(viewing: Client, query: AttachedQuery) -> None:
    AttachedJob.objects.update(last_seen=datetime.now(UTC) - LOST_AFTER * 2)
    content = viewing.get(PAGES[0]).content.decode()
    assert 'class="chip bad"' in content
    assert ">lost</span>" in content
    for path in PAGES[:2]:
        content = viewing.get(path.format(query=query.pk)).content.decode()
        assert 'class="headline bad"' in content


def test_a_failed_query_says_why_without_running_it(viewing: Client, viewer: Actor) -> None:
    """What another machine sends is text, whatever it looks like."""
    failed = event("terminated", datetime.now(UTC), error="<script>alert(1)</script>")
    body = message(failed, job=JOB | {"name": "<b>job</b>"})
    attached_jobs.report(viewer, ReportIn.model_validate(body))
    pk = AttachedQuery.objects.get().pk
    for address in ("/attached/", f"/attached/queries/{pk}/"):
        content = viewing.get(address).content.decode()
        assert "&lt;script&gt;alert(1)" in content
        assert "<script>alert" not in content
        assert "<b>job" not in content


def test_the_charts_are_drawn_over_the_asked_range(viewing: Client, query: AttachedQuery) -> None:
    path = f"/attached/queries/{query.pk}/charts.json?range=15m"
    figures = json.loads(viewing.get(path).content)["figures"]
    assert set(figures) == {"rates", "duration", "state", "memory", "lag"}
    begin, end = figures["rates"]["layout"]["xaxis"]["range"]
    assert end - begin == 15 * 60_000
    assert figures["rates"]["data"][0]["y"] == [25.0] * 3


def test_a_run_that_is_over_shows_its_last_hour(viewing: Client, viewer: Actor) -> None:
    """Without a range in the address, which would show nothing of a run of yesterday."""
    at = datetime.now(UTC) - timedelta(hours=9)
    body = message(progress_event(0, at), event("terminated", at + timedelta(seconds=9), error=""))
    attached_jobs.report(viewer, ReportIn.model_validate(body))
    path = f"/attached/queries/{AttachedQuery.objects.get().pk}/charts.json"
    shown = viewing.get(path).json()["figures"]["rates"]
    begin, end = shown["layout"]["xaxis"]["range"]
    assert begin < at.timestamp() * 1000 < end < (at.timestamp() + 60) * 1000
    assert shown["data"][0]["y"] == [25.0]
    asked = viewing.get(f"{path}?range=5m").json()["figures"]["rates"]
    assert asked["data"][0]["y"] == []
    assert asked["layout"]["annotations"][0]["text"] == "No batch in this time range"


def test_only_an_operator_removes_a_job_and_only_by_a_form(
    viewing: Client, operating: Client, query: AttachedQuery
) -> None:
    address = f"/attached/{query.job_id}/remove/"
    assert "/remove/" not in viewing.get("/attached/").content.decode()
    assert viewing.post(address).status_code == 403
    assert operating.get(address).status_code == 405
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = operating.cookies
    assert strict.post(address).status_code == 403
    assert AttachedJob.objects.count() == 1
    assert address in operating.get("/attached/").content.decode()
    assert operating.post(address)["Location"] == "/attached/"
    assert not AttachedJob.objects.exists()
    assert operating.post(address).status_code == 404


def test_many_jobs_and_runs_cost_no_more_statements(
    operating: Client, viewer: Actor, query: AttachedQuery
) -> None:
    with CaptureQueriesContext(connection) as few:
        operating.get("/attached/")
    for number in range(30):
        report(viewer, f"local-{number}", runs=12)
    with CaptureQueriesContext(connection) as many:
        content = operating.get("/attached/").content.decode()
    assert len(many) <= len(few) + 1
    assert content.count("data-open") == 20 * SHOWN_RUNS
    assert "The newest 10 of 12 runs" in content
    assert "Next" in content
    assert "nightly" in operating.get("/attached/?page=2").content.decode()


def test_a_search_that_finds_nothing_says_so(viewing: Client, query: AttachedQuery) -> None:
    assert "No job matches" in viewing.get("/attached/?q=weekly").content.decode()
    assert "counts" in viewing.get("/attached/?q=NIGHT").content.decode()


@pytest.mark.parametrize("path", PAGES[:2])
def test_pages_hold_no_inline_script_style_or_handler(
    operating: Client, query: AttachedQuery, path: str
) -> None:
    """The content security policy would stop them."""
    content = operating.get(path.format(query=query.pk)).content.decode()
    assert not re.search(r"<script(?![^>]*\bsrc=)", content)
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=", content)


def test_what_is_not_there_is_a_404(viewing: Client) -> None:
    for path in PAGES[1:]:
        assert viewing.get(path.format(query=999)).status_code == 404
