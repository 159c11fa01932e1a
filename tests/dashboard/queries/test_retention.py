"""The retention of a query: given with the form of a query, changed on the query's page."""

import pytest
from django.test import Client

from controlplane.models import AuditEntry, Cluster, Query
from dashboard.queries.forms import DEFAULTS

pytestmark = pytest.mark.nightly("pages")

QUERY = {**DEFAULTS, "name": "fresh", "streams": "s0", "aggregates": "n = count(*)"}
NEW = "/clusters/sf/queries/new/"
CHECK = "/clusters/sf/queries/check/"
DAYS_30 = {"retention": "30", "retention_unit": "days", "retention_windows": "5,000"}
HTMX = {"HX-Request": "true"}


def page_of(query: Query) -> str:
    return f"/clusters/sf/queries/{query.pk}/"


def kept(query: Query) -> tuple[int, int]:
    query.refresh_from_db()
    return query.retention_s, query.retention_windows


def test_a_query_is_submitted_with_a_retention(operating: Client, sf: Cluster) -> None:
    operating.post(NEW, QUERY | DAYS_30)
    assert kept(Query.objects.get(name="fresh")) == (30 * 86_400, 5_000)


def test_settings_that_are_refreshed_still_show_the_retention(
    operating: Client, sf: Cluster
) -> None:
    operating.post(NEW, QUERY | DAYS_30)
    page = page_of(Query.objects.get(name="fresh"))
    for headers in ({}, HTMX):
        content = operating.get(page, headers=headers).content.decode()
        assert "30 days</button>" in content


def test_the_form_shows_the_defaults_of_the_api(operating: Client, sf: Cluster) -> None:
    operating.post(NEW, QUERY)
    assert kept(Query.objects.get(name="fresh")) == (604_800, 1_000_000)
    content = operating.get(NEW).content.decode()
    assert 'name="retention" inputmode="decimal" autocomplete="off" required value="7"' in content
    assert "<option selected>days</option>" in content


@pytest.mark.parametrize(
    ("values", "field", "fault"),
    [
        ({"retention": "1", "retention_unit": "seconds"}, "retention_s", "Must be 60 to"),
        ({"retention": "soon"}, "retention_s", "Enter a number of whole seconds"),
        ({"retention_windows": "0"}, "retention_windows", "Must be 1 to 100,000,000 windows"),
        ({"retention_windows": "many"}, "retention_windows", "Enter a whole number"),
    ],
)
def test_a_fault_stands_at_its_field(
    operating: Client, sf: Cluster, values: dict[str, str], field: str, fault: str
) -> None:
    """In the answer to the submission, and while the form is filled in."""
    answer = operating.post(NEW, QUERY | values)
    content = answer.content.decode()
    assert answer.status_code == 422
    at_field = content[content.index(f'id="faults-{field}"') :]
    assert fault in at_field[: at_field.index("</p>")]
    checked = operating.post(CHECK, QUERY | values | {"field": field}, headers=HTMX)
    assert fault in checked.content.decode()
    assert not Query.objects.filter(name="fresh").exists()


def test_the_retention_is_changed_on_the_page(operating: Client, sf: Cluster) -> None:
    query = Query.objects.get(name="a")
    assert ">7 days</button>" in operating.get(page_of(query)).content.decode()
    answer = operating.post(
        f"{page_of(query)}retention/", DAYS_30 | {"reason": "monthly report"}, headers=HTMX
    )
    assert answer["HX-Redirect"] == page_of(query)
    assert kept(query) == (30 * 86_400, 5_000)
    entry = AuditEntry.objects.get(action="query.retain")
    assert (entry.reason, entry.after["retention_windows"]) == ("monthly report", 5_000)
    assert ">30 days</button>" in operating.get(page_of(query)).content.decode()


def test_a_refused_change_returns_the_form_as_it_was_sent(operating: Client, sf: Cluster) -> None:
    query = Query.objects.get(name="a")
    wrong = {"retention": "5", "retention_unit": "seconds", "retention_windows": "7"}
    answer = operating.post(f"{page_of(query)}retention/", wrong, headers=HTMX)
    content = answer.content.decode()
    assert (answer.status_code, content.count("Must be 60 to")) == (422, 1)
    assert "<option selected>seconds</option>" in content
    assert 'value="7"' in content
    assert kept(query) == (604_800, 1_000_000)


def test_an_earlier_query_of_the_same_name_keeps_its_own(operating: Client, sf: Cluster) -> None:
    first = Query.objects.get(name="a")
    Query.objects.filter(pk=first.pk).update(state="ended")
    operating.post(NEW, QUERY | {"name": "a"})
    operating.post(f"{page_of(first)}retention/", DAYS_30)
    assert kept(first) == (30 * 86_400, 5_000)
    assert kept(Query.objects.get(name="a", state="pending")) == (604_800, 1_000_000)
