"""List pages: filter bar, faults in place, folded rows, time range."""

import json
import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.access import audit
from controlplane.access.roles import Actor
from controlplane.lists import saved_views
from controlplane.lists.kinds import KINDS
from controlplane.models import AuditEntry, Cluster, Decision, Query
from controlplane.pagination.filter_text import terms_of
from tests.dashboard.conftest import browser_of
from tests.support import cluster as made

pytestmark = pytest.mark.nightly("pages")

LISTS = ("queries", "streams", "proposals", "decisions", "audit")


def address(name: str) -> str:
    return "/audit/" if name == "audit" else f"/clusters/sf/{name}/"


@pytest.fixture
def client(operator: Actor, sf: Cluster) -> Client:
    return browser_of(operator)


@pytest.mark.parametrize("name", LISTS)
def test_a_list_has_headline_filter_and_help_of_all_fields(client: Client, name: str) -> None:
    content = client.get(address(name)).content.decode()
    assert content.index('id="list-headline"') < content.index('id="filters"')
    assert re.findall(r"<tr><td><code>(\w+)</code>", content) == [
        field.term for field in KINDS[name].fields
    ]


@pytest.mark.parametrize("name", LISTS)
def test_completion_is_derived_from_the_fields(client: Client, name: str) -> None:
    bar = client.get(address(name)).context["bar"]
    declared = {
        field.term: (list(field.operators), list(field.choices())) for field in KINDS[name].fields
    }
    assert {
        item["name"]: (item["operators"], item["values"]) for item in json.loads(bar.completion)
    } == declared


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("is_htmx", [False, True])
def test_a_fault_is_shown_at_its_place(client: Client, name: str, is_htmx: bool) -> None:
    headers = {"hx-request": "true"} if is_htmx else {}
    answer = client.get(f"{address(name)}?filter=lost:7 two", headers=headers)
    content = answer.content.decode()
    assert answer.status_code == 422
    assert "<mark>lost:7</mark> two" in content
    assert ('id="filters"' in content) is not is_htmx


@pytest.mark.parametrize("name", LISTS)
def test_common_filters_can_be_read(client: Client, name: str) -> None:
    for common in KINDS[name].common:
        assert len(terms_of(common.text)) == len(common.text.split())
        answer = client.get(address(name), {"filter": common.text})
        assert answer.status_code == 200, common.text
        bar = re.sub(r"\s+", " ", answer.content.decode()).partition("list-tools")[2]
        assert re.findall(r' aria-current="true">([^<]+)</a>', bar.partition("</span>")[0]) == [
            common.title
        ]


def test_an_address_without_a_filter_lists_live_queries(client: Client, sf: Cluster) -> None:
    Query.objects.filter(cluster=sf, name="a").update(state="ended")
    assert client.get("/clusters/sf/queries/").context["bar"].text == "state:live"
    assert _names(client, "") == ["c", "b"]
    assert _names(client, "?filter=") == ["c", "b", "a"]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("?state=ended", "state:ended"),
        ("?node=3&stream=s0", 'node:3 stream="s0"'),
        ("?state=", ""),
        ('?q=two+"words"', '"two words"'),
        ("?state=live&filter=rate>1", "state:live rate>1"),
    ],
)
def test_parameters_become_terms_of_the_filter(client: Client, query: str, text: str) -> None:
    answer = client.get(f"/clusters/sf/queries/{query}")
    assert answer.context["bar"].text == text


def test_the_order_of_the_address_holds_over_all_pages(client: Client, sf: Cluster) -> None:
    page = client.get("/clusters/sf/queries/?order=name&per_page=2&page=2").context["page"]
    assert [row.query.name for row in page.rows] == ["c"]


def test_a_small_share_of_a_processor_is_not_zero(client: Client) -> None:
    Query.objects.update(processor_percent=0.02, measured_at=timezone.now())
    content = client.get("/clusters/sf/queries/").content.decode()
    assert "&lt; 0.1 %" in content
    assert "State size" in content


def test_machine_actions_are_folded_and_unfold(operator: Actor, sf: Cluster) -> None:
    client = browser_of(made.actor("admin"))
    weir = made.actor("operator", "relay")
    for number in range(5):
        audit.record(weir, "query.submit", f"q{number}", cluster=sf)
    audit.record(operator, "policy.change", "policy", cluster=sf)
    audit.record_refusal(operator, "GET /grants/")
    folded = client.get("/audit/").context["folded"]
    refused = AuditEntry.objects.filter(action="access.refused").count()
    logins = AuditEntry.objects.filter(action="login").count()
    assert folded.changes == folded.people - refused - logins
    assert refused == 1
    # One more is a single action of a machine: the start of the queries by the fixture.
    assert sum(row.folded.count for row in folded.rows if row.folded) == folded.machines - 1
    rows = [row.folded for row in folded.rows if row.folded and row.folded.actor == weir.name]
    assert [(row.action, row.count) for row in rows] == [("query.submit", 5)]
    assert "policy.change" in [row.entry.action for row in folded.rows if row.entry]
    content = client.get("/audit/").content.decode()
    for code in ("query.submit", "policy.change"):
        assert f'<span class="sub">{code}</span>' in content, "the filter needs it"
    link = re.search(rf'href="([^"]*{weir.name}[^"]*fold=no[^"]*)"', content)
    assert link is not None
    unfolded = client.get("/audit/" + link[1].replace("&amp;", "&"))
    names = [entry.object for entry in unfolded.context["page"].rows]
    assert names == ["q4", "q3", "q2", "q1", "q0"]


def test_pages_of_folded_entries_repeat_and_omit_none(operator: Actor, sf: Cluster) -> None:
    client = browser_of(made.actor("admin"))
    for number in range(120):
        action = "query.submit" if number % 3 else "policy.change"
        audit.record(operator, action, f"object {number}", cluster=sf)
    seen: list[str] = []
    cursor = ""
    for _ in range(10):
        folded = client.get("/audit/", {"cursor": cursor} if cursor else {}).context["folded"]
        seen += [row.entry.object for row in folded.rows if row.entry]
        cursor = folded.next
        if not cursor:
            break
    expected = [f"object {number}" for number in reversed(range(120)) if not number % 3]
    assert [name for name in seen if name.startswith("object")] == expected
    assert client.get("/audit/?before=none").status_code == 422


def test_lists_with_times_follow_the_time_range(operator: Actor, sf: Cluster) -> None:
    client = browser_of(made.actor("admin"))
    now = timezone.now()
    for hours in (1, 30):
        moment = now - timedelta(hours=hours)
        AuditEntry.objects.create(at=moment, actor="ann", action="a.b", object=f"h{hours}")
        Decision.objects.create(
            cluster=sf, loop="imbalance", code="acted", text=f"h{hours}", first_at=moment,
            last_at=moment,
        )  # fmt: skip
    entries = client.get("/audit/?range=6h&fold=no&filter=on:h").context["page"].rows
    assert [entry.object for entry in entries] == ["h1"]
    start, stop = (round((now - timedelta(hours=h)).timestamp() * 1000) for h in (31, 29))
    rows = client.get(f"/clusters/sf/decisions/?from={start}&to={stop}").context["rows"]
    assert [row.row.text for row in rows] == ["h30"]


def test_repeated_decisions_are_folded(client: Client, sf: Cluster) -> None:
    now = (timezone.now() - timedelta(hours=2)).replace(minute=30, second=0, microsecond=0)
    for number in range(6):
        moment = now + timedelta(seconds=10 * number)
        Decision.objects.create(
            cluster=sf, loop="imbalance", code=("acted", "balanced")[number % 2], text=str(number),
            first_at=moment, last_at=moment, count=2,
        )  # fmt: skip
    query = f"?from={round((now - timedelta(hours=9)).timestamp() * 1000)}"
    context = client.get(f"/clusters/sf/decisions/{query}").context
    rows = context["rows"]
    assert [[row.row.text for row in context[name]] for name in ("loud", "quiet")] == [["4"], ["5"]]
    assert [(row.row.text, row.row.count) for row in rows] == [("5", 6), ("4", 6)]
    single = client.get(f"/clusters/sf/decisions/{query}&fold=no").context["rows"]
    assert [row.row.count for row in single] == [2] * 6


def _names(client: Client, query: str) -> list[str]:
    page = client.get(f"/clusters/sf/queries/{query}").context["page"]
    return [row.query.name for row in page.rows]


def test_files_have_the_filtered_rows(client: Client, sf: Cluster) -> None:
    content = client.get("/clusters/sf/queries/?filter=b").content.decode()
    links = re.findall(r'href="(/clusters/sf/lists/[^"]*)"', content)
    as_csv, as_json = (client.get(link.replace("&amp;", "&")) for link in links)
    assert as_csv["Content-Disposition"] == 'attachment; filename="sf-queries.csv"'
    lines = b"".join(as_csv.streaming_content).decode().splitlines()  # type: ignore[attr-defined]
    assert [line.split(",")[1] for line in lines] == ["name", "b"]
    body = json.loads(b"".join(as_json.streaming_content))  # type: ignore[attr-defined]
    assert [row["name"] for row in body["rows"]] == ["b"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/clusters/sf/lists/queries/rows/?filter=lost:1", 422),
        ("/clusters/sf/lists/queries/rows/?stat=1", 422),
        ("/clusters/sf/lists/audit/rows/", 404),
        ("/lists/queries/rows/", 404),
        ("/lists/audit/rows/?range=1h", 200),
    ],
)
def test_files_of_wrong_addresses_are_refused(client: Client, path: str, status: int) -> None:
    assert client.get(path).status_code == status


def test_a_view_is_saved_opened_renamed_and_deleted(client: Client, operator: Actor) -> None:
    back = "/clusters/sf/queries/?filter=b"
    values = {"list": "queries", "name": "hot", "filter": "rate>1", "order": "-name",
              "is_default": "yes", "back": back}  # fmt: skip
    assert client.post("/views/save/", values)["Location"] == back
    (view,) = saved_views.saved_views(operator)
    opened = client.get("/clusters/sf/queries/")
    assert (opened.context["bar"].text, opened.context["list"].order) == ("rate>1", "-name")
    assert client.get("/clusters/sf/queries/?filter=").context["bar"].text == ""
    client.post(f"/views/{view.pk}/change/", {"default": "no", "back": "//elsewhere/"})
    client.post(f"/views/{view.pk}/change/", {"name": "cold", "back": back})
    view.refresh_from_db()
    assert (view.name, view.is_default) == ("cold", False)
    answer = client.post(f"/views/{view.pk}/delete/", {"back": "//elsewhere/"})
    assert answer["Location"] == "/"
    assert saved_views.saved_views(operator) == []
