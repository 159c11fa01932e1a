"""Every page for everybody: who sees it, what it says when there is nothing, what it costs."""

import json
import re
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.db import connection
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.models import Alert, Cluster, Proposal, Query, QueryStream, Stream, Task
from controlplane.processes.runtime import checks
from controlplane.proposals import claims, decisions, requests
from dashboard.site import server_error
from tests.dashboard.conftest import browser_of
from tests.support import cluster as made
from tests.support.alerting import firing
from tests.support.texts import SUMMARY_TEXT
from tests.support.watching import AGES

PAGES = [
    "/", "/clusters/sf/", "/clusters/sf/charts.json", "/clusters/sf/summary/",
    "/clusters/sf/cards/", "/clusters/sf/strip/", "/clusters/sf/flow/?unit=bytes",
    "/clusters/sf/nodes.csv", "/clusters/sf/node-list/", "/clusters/sf/streams/",
    "/clusters/sf/streams/suggest/?find=s",
    "/clusters/sf/streams/{stream}/", "/clusters/sf/queries/", "/clusters/sf/queries/{query}/",
    "/clusters/sf/queries/{query}/results/", "/clusters/sf/queries/{query}/charts.json",
    "/clusters/sf/queries/{query}/keys/", "/clusters/sf/queries/{query}/keys/charts.json",
    "/clusters/sf/proposals/", "/clusters/sf/proposals/form/?algorithm=least_cost",
    "/clusters/sf/proposals/{proposal}/", "/clusters/sf/proposals/{proposal}/charts.json",
    "/clusters/sf/proposals/{proposal}/steps.json",
    "/clusters/sf/proposals/{proposal}/actions.csv",
    "/clusters/sf/proposals/{proposal}/actions.json",
    "/clusters/sf/shedding/", "/clusters/sf/shedding/charts.json", "/clusters/sf/shedding/history/",
    "/audit/", "/webhooks/", "/help/",
]  # fmt: skip
TYPES = {
    "json": "application/json", "csv": "text/csv; charset=utf-8", "": "text/html; charset=utf-8",
}  # fmt: skip
# The attributes with the addresses of what a browser loads or sends to.
LOADED = re.compile(
    r"(?:\ssrc|\saction|\shx-\w+|\sformaction|\sposter|<link[^>]*\shref)=\"([^\"]*)\""
)
# Pages of a thousand rows ask the database no more often than pages of three.
# The page of a cluster without results, with exceeded limits and their likely cause.
MOST_STATEMENTS = 65


@pytest.fixture
def numbers(sf: Cluster, ready: Proposal) -> dict[str, int]:
    """The ids in the paths."""
    stream, query = Stream.objects.get(name="s0"), Query.objects.get(name="b")
    return {"stream": stream.pk, "query": query.pk, "proposal": ready.pk}


def test_a_viewer_sees_every_page_without_a_verb(viewing: Client, numbers: dict[str, int]) -> None:
    """The only form a viewer can send is the logout; the theme is not a verb."""
    # Saved views are the viewer's own.
    own = {"/logout/", "/clusters/sf/queries/end/", "/views/save/"}
    for path in PAGES:
        answer = viewing.get(path.format(**numbers))
        suffix = path.partition("?")[0].rpartition(".")[2] if "." in path else ""
        assert (answer.status_code, answer["Content-Type"]) == (200, TYPES[suffix]), path
        if path.endswith("/"):
            content = answer.content.decode()
            posts = re.findall(r'<form[^>]*method="post"[^>]*action="([^"]*)"', content)
            assert set(posts) <= own, path
            assert "danger" not in content, path


def test_who_has_no_role_is_told_so(sf: Cluster) -> None:
    answer = browser_of(made.actor("")).get("/")
    assert answer.status_code == 403
    assert b"another role" in answer.content


@pytest.mark.parametrize(
    "path",
    ["/clusters/no/", "/clusters/sf/streams/999/", "/clusters/sf/queries/999/",
     "/clusters/sf/proposals/999/", "/nowhere/"],
)  # fmt: skip
def test_what_is_not_there_is_a_404(operating: Client, sf: Cluster, path: str) -> None:
    answer = operating.get(path)
    assert answer.status_code == 404
    assert b"Go to the fleet" in answer.content


def test_pages_hold_no_inline_script_style_or_handler(
    operating: Client, numbers: dict[str, int]
) -> None:
    """The content security policy would stop them."""
    for path in [page for page in PAGES if page.endswith("/")]:
        content = operating.get(path.format(**numbers)).content.decode()
        assert not re.search(r"<script(?![^>]*\bsrc=)", content), path
        assert not re.search(r"<style|\sstyle=|\son[a-z]+=", content), path
        # Nothing is loaded from or sent to another host.
        assert not [one for one in LOADED.findall(content) if urlsplit(one).netloc], path


def test_the_help_explains_the_words_and_the_keys(viewing: Client, sf: Cluster) -> None:
    content = viewing.get("/help/").content
    assert b"Replication factor" in content
    assert b"<kbd>g</kbd> <kbd>q</kbd>" in content


@pytest.mark.parametrize(
    ("path", "said"),
    [("/", "No cluster yet"), ("/audit/?action=none", "No entry matches")],
)
def test_an_empty_weir_says_what_is_missing(viewing: Client, path: str, said: str) -> None:
    assert said in viewing.get(path).content.decode()


@pytest.mark.parametrize(
    ("page", "said"),
    [("streams/", "No stream is registered"), ("queries/", "No query is live"),
     ("proposals/", "No proposal yet"), ("", "This cluster has no node yet"),
     ("queries/?q=x", "No query matches")],
)  # fmt: skip
def test_an_empty_cluster_says_what_is_missing(viewing: Client, page: str, said: str) -> None:
    Cluster.objects.create(slug="new", name="New")
    assert said in viewing.get(f"/clusters/new/{page}").content.decode()


def test_the_charts_say_what_live_updates_need(viewing: Client, sf: Cluster) -> None:
    answer = json.loads(viewing.get("/clusters/sf/charts.json?range=5m").content)
    assert set(answer["figures"]) == {"imbalance", "replication", "latency", "rates"}
    assert answer["columns"]["p95"] == [1200.0] * len(AGES)
    assert (answer["resolution"], answer["live"]) == (1, True)
    assert answer["end"] - answer["start"] == 300_000
    heat = answer["heat"]
    assert [row[2] for row in heat["nodes"]] == [500.0] * 4
    assert [[share for share in row if share is not None][-1] for row in heat["shares"]] == [
        0.9, 0.5, 0.5, 0.5,
    ]  # fmt: skip


def test_a_fixed_range_is_not_live(viewing: Client, sf: Cluster) -> None:
    end = timezone.now() - timedelta(hours=2)
    path = f"/clusters/sf/charts.json?from={(end - timedelta(hours=1)).timestamp() * 1000:.0f}"
    answer = json.loads(viewing.get(f"{path}&to={end.timestamp() * 1000:.0f}").content)
    assert answer["live"] is False
    assert answer["columns"]["t"] == []


def grow(cluster: Cluster, count: int) -> None:
    """Add running queries, streams and moves by the hundred."""
    now, node = timezone.now(), cluster.nodes.get(index=1)
    streams = Stream.objects.bulk_create(
        Stream(cluster=cluster, name=f"more-{i}") for i in range(count)
    )
    queries = Query.objects.bulk_create(
        Query(
            cluster=cluster,
            name=f"more-{i}",
            state="running",
            text=SUMMARY_TEXT,
            window_s=60.0,
            submitted_at=now,
        )
        for i in range(count)
    )
    pairs = list(zip(queries, streams, strict=True))
    QueryStream.objects.bulk_create(QueryStream(query=q, stream=s) for q, s in pairs)
    Task.objects.bulk_create(Task(query=q, node=node, since_version=1) for q in queries)


def test_a_thousand_rows_cost_no_more_statements(
    operating: Client, sf: Cluster, numbers: dict[str, int]
) -> None:
    """A page that asks once per row is slow exactly when it is needed."""
    paths = [page.format(**numbers) for page in PAGES if "json" not in page]
    few = {path: statements(operating, path) for path in paths}
    grow(sf, 1000)
    for path in paths:
        many = statements(operating, path)
        assert many <= min(few[path] + 2, MOST_STATEMENTS), path


def statements(client: Client, path: str) -> int:
    """Return how many statements a page sends."""
    with CaptureQueriesContext(connection) as sent:
        assert client.get(path).status_code == 200
    return len(sent)


def test_a_list_shows_fifty_rows_a_page(operating: Client, sf: Cluster) -> None:
    grow(sf, 150)
    first = operating.get("/clusters/sf/queries/").content.decode()
    second = operating.get("/clusters/sf/queries/?page=4").content.decode()
    assert len(re.findall(r"\sdata-open\b(?!-)", first)) == 50
    assert len(re.findall(r"\sdata-open\b(?!-)", second)) == 3


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ("?q=b", ["b"]),
        ("?stream=s0", ["b", "a"]),
        ("?state=ended", []),
        ("?node=99", []),
        ("?order=name", ["a", "b", "c"]),
        ("?order=-name", ["c", "b", "a"]),
    ],
)
def test_the_url_filters_and_sorts_queries(
    viewing: Client, sf: Cluster, filters: str, names: list[str]
) -> None:
    content = viewing.get(f"/clusters/sf/queries/{filters}").content.decode()
    assert re.findall(r"data-open>([^<]*)<", content) == names


def test_the_list_of_streams_begins_with_the_alert_about_their_topics(
    viewing: Client, sf: Cluster
) -> None:
    Cluster.objects.update(desired=Cluster.Desired.RUNNING)
    alert = firing(sf, "topics", value=90.0, limit=60.0, detail="s0 is 90 s behind its topic")
    for acknowledged, grade in ((None, "bad"), (timezone.now(), "warn")):
        Alert.objects.update(acknowledged_at=acknowledged)
        headline = viewing.get("/clusters/sf/streams/").context["headline"]
        assert (headline.what, headline.grade) == (alert.detail, grade)
        assert headline.link == f"/clusters/sf/alerts/{alert.pk}/"
    Cluster.objects.update(desired=Cluster.Desired.STOPPED)
    assert not viewing.get("/clusters/sf/streams/").context["headline"].grade


def test_a_rate_that_is_not_measured_leads_nowhere(viewing: Client, sf: Cluster) -> None:
    explained = 'data-explain="stream:s0"'
    assert explained not in viewing.get("/clusters/sf/streams/").content.decode()
    Stream.objects.filter(name="s0").update(rate=5.0)
    assert explained in viewing.get("/clusters/sf/streams/").content.decode()


@pytest.mark.parametrize(
    "path",
    ["queries/", "streams/", "proposals/", "decisions/", "dead-letters/", "dead-letters/export/",
     "/audit/", "/grants/", "/lab/", "/attached/",
     "", "charts.json", "summary/", "cards/", "strip/", "flow/", "nodes.csv", "node-list/",
     "nodes/0/", "nodes/0/live/", "nodes/0/charts.json", "nodes/0/tasks.csv"],
)  # fmt: skip
def test_a_page_refuses_parameters_that_it_does_not_have(sf: Cluster, path: str) -> None:
    """As the API does: a misspelt filter would show rows that it excludes, or another range."""
    client = browser_of(made.actor("admin"))
    address = path if path.startswith("/") else f"/clusters/sf/{path}"
    assert client.get(address).status_code == 200
    refused = client.get(f"{address}?stat=ended")
    assert refused.status_code == 422
    assert refused.context["faults"].keys() == {"stat"}


@pytest.mark.parametrize("part", ["", "live/", "results/", "charts.json"])
def test_pages_of_a_query_refuse_parameters_that_they_do_not_have(
    viewing: Client, numbers: dict[str, int], part: str
) -> None:
    address = f"/clusters/sf/queries/{numbers['query']}/{part}"
    known = "" if part == "live/" else "state=open&value=n&values=computed"
    assert viewing.get(f"{address}?{known}").status_code == 200
    assert viewing.get(f"{address}?stat=open").status_code == 422


@pytest.mark.parametrize("query", ["queries/?order=nonsense", "dead-letters/?reason=nonsense"])
def test_a_list_refuses_values_that_are_not_allowed(
    viewing: Client, sf: Cluster, query: str
) -> None:
    assert viewing.get(f"/clusters/sf/{query}").status_code == 422


def test_the_page_of_proposals_shows_the_queue(
    operating: Client, operator: Actor, sf: Cluster
) -> None:
    """In the order of requests, with position, estimate and requester."""
    first, second = (requests.request(operator, sf, "mms", {"nu": nu}) for nu in (0.1, 0.2))
    assert claims.claim_next() == first
    content = operating.get("/clusters/sf/proposals/").content.decode()
    queue = content.partition('id="queue"')[2].partition("</table>")[0]
    assert re.findall(r"data-open>(.*?)</a>", queue) == [
        f"Proposal {first.pk}", f"Proposal {second.pk}",
    ]  # fmt: skip
    positions = re.findall(r'data-label="Position">(.*?)</td>', queue)
    assert positions[0].startswith("computed now")
    assert positions[1] == "1"
    assert queue.count("a-operator") == 2
    decisions.cancel(operator, first)
    decisions.cancel(operator, second)
    assert 'id="queue"' not in operating.get("/clusters/sf/proposals/").content.decode()


def test_an_htmx_request_gets_the_fragment(viewing: Client, sf: Cluster) -> None:
    """One template serves the page and the live update."""
    part = viewing.get("/clusters/sf/queries/", headers={"HX-Request": "true"}).content
    assert b"<table" in part
    assert b"<html" not in part


def test_the_login_leads_back_to_where_one_wanted_to_go(sf: Cluster, operating: Client) -> None:
    from django.contrib.auth.models import User  # noqa: PLC0415

    user = User.objects.get(username="a-operator")
    user.set_password("a-long-pass-phrase")
    user.save()
    values = {"username": "a-operator", "password": "a-long-pass-phrase", "next": "/audit/"}
    assert Client().post("/login/", values)["Location"] == "/audit/"
    evil = values | {"next": "https://evil.example/"}
    assert Client().post("/login/", evil)["Location"] == "/"


def test_the_error_page_names_a_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a login gets then: its session cannot be saved."""
    monkeypatch.setattr(checks, "FULL_BYTES", 1 << 60)
    answer = server_error(RequestFactory().get("/login/"))
    assert answer.status_code == 503
    assert "is full" in answer.content.decode()
    monkeypatch.setattr(checks, "FULL_BYTES", 0)
    answer = server_error(RequestFactory().get("/login/"))
    assert answer.status_code == 500
    assert "is full" not in answer.content.decode()


def test_the_error_page_stands_alone() -> None:
    """It is rendered without a request, when little else works."""
    from django.template.loader import render_to_string  # noqa: PLC0415

    assert "Something broke" in render_to_string("500.html")
    assert Path("static/css/tokens.css").exists()
