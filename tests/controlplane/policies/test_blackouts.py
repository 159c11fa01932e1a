"""Blackouts: minutes after the moments of a cron line, or a range."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from controlplane.access.roles import Actor
from controlplane.errors import Invalid, NotFound
from controlplane.models import AuditEntry, Blackout, Cluster
from controlplane.policies.blackouts import (
    add_blackout,
    blackout_until,
    cron_text,
    in_blackout,
    remove_blackout,
)

MONDAY = datetime(2026, 3, 2, tzinfo=UTC)


def at(hour: int, minute: int = 0, day: int = 0) -> datetime:
    return MONDAY + timedelta(days=day, hours=hour, minutes=minute)


@pytest.mark.parametrize(
    ("moment", "until"),
    [
        (at(8, 29), None),
        (at(8, 30) - timedelta(microseconds=1), None),
        (at(8, 30), at(10)),
        (at(9, 59), at(10)),
        (at(10), None),
        (at(8, 30, day=5), None),
        (at(9, day=4), at(10, day=4)),
    ],
)
def test_a_cron_line_holds_for_its_minutes(moment: datetime, until: datetime | None) -> None:
    """From half past eight on, an hour and a half, on working days."""
    row = Blackout(cron="30 8 * * 1-5", minutes=90)
    assert blackout_until(row, moment) == until


def test_one_over_midnight_holds_on_the_next_day() -> None:
    row = Blackout(cron="0 23 * * SUN", minutes=120)
    assert blackout_until(row, at(0, 59)) == at(1)
    assert blackout_until(row, at(1)) is None


def test_a_range_holds_from_its_beginning_to_before_its_end() -> None:
    row = Blackout(starts_at=at(8), ends_at=at(9))
    held = [blackout_until(row, moment) for moment in (at(7, 59), at(8), at(8, 59), at(9))]
    assert held == [None, at(9), at(9), None]


@given(
    minute=st.integers(0, 59),
    hour=st.integers(0, 23),
    length=st.integers(1, 3000),
    offset=st.integers(0, 6 * 86_400),
)
def test_a_daily_line_agrees_with_counting(
    minute: int, hour: int, length: int, offset: int
) -> None:
    """Held exactly if one of the daily moments lies within the last `length` minutes."""
    row = Blackout(cron=f"{minute} {hour} * * *", minutes=length)
    moment = at(0, day=5) + timedelta(seconds=offset)
    begins = [at(hour, minute, day) for day in range(12)]
    held = any(begin <= moment < begin + timedelta(minutes=length) for begin in begins)
    assert (blackout_until(row, moment) is not None) == held


@pytest.mark.django_db(transaction=True)
def test_the_one_that_ends_last_is_told(admin: Actor, sf: Cluster) -> None:
    now = timezone.now()
    for hours, why in ((1, "short"), (3, "long")):
        end = now + timedelta(hours=hours)
        add_blackout(admin, sf, reason=why, starts_at=now - timedelta(hours=1), ends_at=end)
    held = in_blackout(sf, now)
    assert held is not None
    assert held.reason == "long"
    assert in_blackout(sf, now + timedelta(hours=4)) is None


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"cron": "30 8 * *", "minutes": 5}, "cron"),
        ({"cron": "61 8 * * *", "minutes": 5}, "cron"),
        ({"cron": "* * * * * *", "minutes": 5}, "cron"),
        ({"cron": "0 0 30 2 *", "minutes": 5}, "cron"),
        ({"cron": "@daily", "minutes": 5}, "cron"),
        ({"cron": "0 8 * * *", "minutes": 0}, "minutes"),
        ({"cron": "0 8 * * *", "minutes": 10_081}, "minutes"),
        ({"cron": "0 8 * * *", "minutes": 5, "starts_at": at(8)}, "cron"),
        ({"cron": "0 8 * * *", "minutes": 5, "ends_at": at(8)}, "cron"),
        ({}, "starts_at"),
        ({"starts_at": at(8)}, "ends_at"),
        ({"ends_at": at(8)}, "starts_at"),
        ({"starts_at": at(9), "ends_at": at(8)}, "ends_at"),
        ({"starts_at": at(8), "ends_at": at(9)}, "ends_at"),
        ({"starts_at": datetime(2030, 1, 1), "ends_at": at(9)}, "starts_at"),  # noqa: DTZ001
        ({"cron": "0 8 * * *", "minutes": 5, "reason": " "}, "reason"),
    ],
)
def test_what_makes_no_blackout_is_refused(
    admin: Actor, sf: Cluster, given: dict[str, Any], field: str
) -> None:
    """A range of the past is one, too: it would never hold."""
    with pytest.raises(Invalid) as refused:
        add_blackout(admin, sf, **{"reason": "rush hour"} | given)
    assert list(refused.value.fields) == [field]
    assert not Blackout.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_it_is_added_and_removed_with_its_trace(admin: Actor, sf: Cluster) -> None:
    row = add_blackout(admin, sf, cron=" 30  8 * * 1-5", minutes=90, reason="rush hour")
    assert (row.cron, row.owner) == ("30 8 * * 1-5", admin.name)
    remove_blackout(admin, sf, row.pk, "moved")
    with pytest.raises(NotFound):
        remove_blackout(admin, sf, row.pk)
    rows = AuditEntry.objects.filter(action__startswith="blackout").order_by("id")
    assert [(one.action, one.reason) for one in rows] == [
        ("blackout.add", "rush hour"), ("blackout.remove", "moved"),
    ]  # fmt: skip
    values = {"cron": row.cron, "minutes": 90, "starts_at": None, "ends_at": None}
    assert rows[0].after == rows[1].before == values | {
        "reason": "rush hour", "owner": admin.name,
    }  # fmt: skip


def test_a_cron_line_has_words() -> None:
    assert cron_text("30 8 * * 1-5") == "At 08:30 on Monday through Friday"
    assert cron_text("nonsense") == "nonsense"
