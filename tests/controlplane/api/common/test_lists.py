"""Lists: cursors that neither skip nor repeat, ETags, a number of SQL queries that stays."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.clusters import changes
from controlplane.errors import Invalid
from controlplane.models import AuditEntry, Cluster, Query
from controlplane.pagination.cursors import PageRange, slice_of
from tests.controlplane.api.callers import ROOT, get, scripted
from tests.support.cluster import placed, submit

pytestmark = pytest.mark.django_db(transaction=True)
QUERIES = "/clusters/sf/queries"
LISTS = {
    "/clusters?q=s": "clusters",
    "/clusters/sf/queries?": "queries",
    "/clusters/sf/streams?": "streams",
    "/clusters/sf/proposals?": "proposals",
    "/clusters/sf/versions?": "versions",
    "/audit?": "entries",
    "/lab/runs?": "runs",
    "/attached/jobs?": "jobs",
}


@pytest.fixture
def script(operator: Actor, sf: Cluster) -> Client:
    """An operator's script, on a cluster with eleven queries of three moments."""
    placed(operator, sf, {f"q{i}": [f"s{i % 6}"] for i in range(9)})
    submit(operator, sf, {"waiting-1": ["s0"], "waiting-2": ["s1"]})
    return scripted(operator)


def pages(client: Client, path: str, key: str, **headers: str) -> Iterator[list[Any]]:
    """Yield the rows of each page, going on where Link says."""
    address: str | None = f"{ROOT}{path}"
    while address:
        answer = client.get(address, headers=headers)
        assert answer.status_code == 200, answer.content
        yield answer.json()[key]
        link = answer.get("Link")
        assert (link is None) == (answer.json()["next"] is None)
        parts = urlsplit(link.partition(">")[0][1:]) if link else None
        address = f"{parts.path}?{parts.query}" if parts else None


@pytest.mark.both_databases
@pytest.mark.parametrize(
    "order", ["", "name", "-name", "state", "node", "-node", "window", "submitted"]
)
def test_pages_hold_every_row_once_in_order(operator: Actor, sf: Cluster, order: str) -> None:
    """In every order, ties and missing nodes included."""
    placed(operator, sf, {f"q{i}": [f"s{i % 6}"] for i in range(9)})
    submit(operator, sf, {"waiting-1": ["s0"], "waiting-2": ["s1"]})
    path = f"{QUERIES}?order={order}&limit=3"
    found = [row["name"] for page in pages(scripted(operator), path, "queries") for row in page]
    whole = get(scripted(operator), f"{QUERIES}?order={order}&limit=100").json()["queries"]
    assert found == [row["name"] for row in whole]
    assert sorted(found) == sorted(Query.objects.values_list("name", flat=True))


def test_filters_hold_on_every_page(script: Client) -> None:
    """Link keeps what was asked for."""
    found = list(pages(script, f"{QUERIES}?state=running&limit=4", "queries"))
    assert [len(page) for page in found] == [4, 4, 1]
    assert {row["state"] for page in found for row in page} == {"running"}


def test_rows_that_come_meanwhile_shift_nothing(
    script: Client, operator: Actor, sf: Cluster
) -> None:
    """A page by number would show a row twice now."""
    listed = pages(script, f"{QUERIES}?limit=4", "queries")
    first = next(listed)
    submit(operator, sf, {"newest": ["s2"]})
    names = [row["name"] for row in first] + [row["name"] for page in listed for row in page]
    assert len(names) == len(set(names)) == 11


@pytest.mark.parametrize("order", ["name", "-rate", "rate", "-queries", "queries", "split"])
def test_streams_go_on_in_every_order(script: Client, order: str) -> None:
    path = f"/clusters/sf/streams?order={order}&limit=4"
    found = [row["name"] for page in pages(script, path, "streams") for row in page]
    assert sorted(found) == [f"s{i}" for i in range(6)]


@pytest.mark.parametrize("cursor", ["x", "e30", "W1tdLFtdXQ", "🙂", "A" * 2000])
def test_what_is_no_cursor_is_refused(script: Client, cursor: str) -> None:
    answer = get(script, f"{QUERIES}?cursor={cursor}")
    assert (answer.status_code, list(answer.json()["fields"])) == (422, ["cursor"])


def test_a_cursor_of_another_order_is_refused(script: Client) -> None:
    cursor = get(script, f"{QUERIES}?order=name&limit=2").json()["next"]
    assert get(script, f"{QUERIES}?order=state&cursor={cursor}").status_code == 422


def test_a_forged_cursor_is_refused_not_obeyed(sf: Cluster) -> None:
    """Values that the columns do not take."""
    found = Query.objects.filter(cluster=sf)
    cursor = "W1siLXN1Ym1pdHRlZF9hdCIsIi1wayJdLFsibm8gdGltZSIsInggOyBkcm9wIl1d"
    with pytest.raises(Invalid):
        slice_of(found, ("-submitted_at", "-pk"), PageRange(cursor), list)


@pytest.mark.parametrize(("path", "key"), LISTS.items())
def test_an_unchanged_list_is_not_sent_again(script: Client, path: str, key: str) -> None:
    """304 to who has it; a body to who has another."""
    first = get(script, path)
    assert first.status_code == 200
    again = get(script, path, **{"if-none-match": first["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert get(script, path, **{"if-none-match": '"other"'}).status_code == 200


def test_a_changed_list_has_another_etag(script: Client, operator: Actor, sf: Cluster) -> None:
    first = get(script, QUERIES)["ETag"]
    submit(operator, sf, {"newest": ["s2"]})
    assert get(script, QUERIES, **{"if-none-match": first}).status_code == 200


def counted(client: Client, path: str) -> int:
    get(client, path)
    with CaptureQueriesContext(connection) as captured:
        assert get(client, path).status_code == 200
    return len(captured)


@pytest.mark.parametrize("path", LISTS)
def test_many_rows_take_no_more_queries_than_few(
    script: Client, operator: Actor, sf: Cluster, path: str
) -> None:
    """However many rows a page has."""
    few = counted(script, f"{path}&limit=2")
    placed(operator, sf, {f"more-{i}": ["s0", "s1"] for i in range(30)})
    for _ in range(3):
        changes.start(operator, sf)
        changes.stop(operator, sf)
    assert counted(script, f"{path}&limit=100") <= few
    assert few <= 12


def test_the_audit_log_goes_on_at_equal_moments(script: Client, operator: Actor) -> None:
    """Entries of one moment are told apart by their id."""
    at = timezone.now() + timedelta(hours=1)
    AuditEntry.objects.bulk_create(
        AuditEntry(at=at, actor="x", action=f"a{i}", object="o") for i in range(7)
    )
    found = [
        row["action"] for page in pages(script, "/audit?q=x&limit=3", "entries") for row in page
    ]
    assert [action for action in found if action.startswith("a")][:7] == [
        f"a{i}" for i in reversed(range(7))
    ]


def test_a_version_is_read_with_its_operations(script: Client) -> None:
    newest = get(script, "/clusters/sf/versions?limit=1").json()["versions"][0]
    told = get(script, f"/clusters/sf/versions/{newest['version']}").json()
    assert len(told["ops"]) == 9
    assert get(script, "/clusters/sf/versions/9999").status_code == 404
    assert get(script, f"/clusters/sf/versions/{10**30}").status_code == 404
