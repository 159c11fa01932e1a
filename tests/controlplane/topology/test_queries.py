"""A refused submission says what is wrong with each field and leaves nothing behind."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.errors import Invalid
from controlplane.models import AuditEntry, Cluster, Query
from controlplane.queries.spec import QuerySpec
from controlplane.topology import queries
from tests.support.cluster import submit
from tests.support.texts import SUMMARY

GOOD: dict[str, Any] = {"name": "q", "streams": ("s0",), "text": SUMMARY}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("streams", ("nowhere",)),
        ("streams", ()),
        ("streams", ("s0", "s0")),
        ("name", ""),
        ("name", "x" * 101),
        ("name", "a/b"),
        ("name", "bulk"),
    ],
)
def test_a_bad_field_is_named_and_nothing_is_saved(
    operator: Actor, sf: Cluster, field: str, value: Any
) -> None:
    """The one faulty field is told, no other."""
    rows = AuditEntry.objects.count()
    with pytest.raises(Invalid) as refused:
        queries.submit(operator, sf, QuerySpec(**(GOOD | {field: value})))
    assert list(refused.value.fields) == [field]
    assert not Query.objects.exists()
    assert AuditEntry.objects.count() == rows


def test_a_live_name_is_taken_and_an_ended_one_is_free(operator: Actor, sf: Cluster) -> None:
    """Names identify live queries."""
    queries.submit(operator, sf, QuerySpec(**GOOD))
    with pytest.raises(Invalid) as refused:
        queries.submit(operator, sf, QuerySpec(**GOOD))
    assert list(refused.value.fields) == ["name"]
    queries.end(operator, sf, ["q"])
    assert queries.submit(operator, sf, QuerySpec(**GOOD)).state == "pending"


def test_a_bulk_request_is_saved_whole_or_not_at_all(operator: Actor, sf: Cluster) -> None:
    """Row 1 names an unknown stream, row 2 repeats row 0: both are told, none is saved."""
    specs = [
        QuerySpec("a", ("s0",), SUMMARY),
        QuerySpec("b", ("nowhere",), SUMMARY),
        QuerySpec("a", ("s1",), SUMMARY),
    ]
    with pytest.raises(Invalid) as refused:
        queries.submit_many(operator, sf, specs)
    assert {row: list(told) for row, told in refused.value.rows.items()} == {
        1: ["streams"],
        2: ["name"],
    }
    assert not Query.objects.exists()


def test_a_bulk_request_writes_one_audit_row(operator: Actor, sf: Cluster) -> None:
    """A thousand queries by one request are one change by one person."""
    before = AuditEntry.objects.count()
    submit(operator, sf, {f"q{i}": ["s0", "s1"] for i in range(1000)})
    assert AuditEntry.objects.count() == before + 1
    entry = AuditEntry.objects.latest("id")
    assert (entry.actor, entry.address) == (operator.name, "192.0.2.7")


def test_more_than_ten_thousand_are_refused(operator: Actor, sf: Cluster) -> None:
    """One request must not hold the write lock for long."""
    with pytest.raises(Invalid):
        submit(operator, sf, {f"q{i}": ["s0"] for i in range(10_001)})


def test_ending_a_pending_query_is_immediate(operator: Actor, sf: Cluster) -> None:
    """It has no place in the routing table to give up."""
    (query,) = submit(operator, sf, {"q": ["s0"]})
    assert queries.end(operator, sf, ["q"]) == 1
    query.refresh_from_db()
    assert query.state == "ended"


def test_a_query_ends_when_its_time_has_come(operator: Actor, sf: Cluster) -> None:
    """ends_at is kept by the beat."""
    soon = timezone.now() + timedelta(minutes=1)
    queries.submit(operator, sf, QuerySpec(**GOOD, ends_at=soon))
    assert queries.end_overdue(sf.pk, soon - timedelta(seconds=1)) == 0
    assert queries.end_overdue(sf.pk, soon) == 1
