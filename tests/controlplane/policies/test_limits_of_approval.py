"""Times and caps of automatic approval hold to the microsecond, the move and the byte."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone

from controlplane.models import Cluster, Proposal
from controlplane.policies.auto_approval import PolicyDecision, decide_auto_approval
from controlplane.policies.settings import settings_of
from tests.controlplane.policies.test_planner_record import entry
from tests.support.watching import reachable

pytestmark = pytest.mark.django_db
BERLIN = ZoneInfo("Europe/Berlin")
INSTANT = timedelta(microseconds=1)
# Monday 2 to Sunday 8 March 2026.
DAYS = [date(2026, 3, day) for day in range(2, 9)]
MONDAY, TUESDAY, SUNDAY = DAYS[0], DAYS[1], DAYS[6]


@pytest.fixture
def plan(db: None) -> Proposal:
    """A plan of two moves and 1 kB that halves the replication factor; it is not stored."""
    cluster = Cluster.objects.create(slug="sf", name="SF")
    return Proposal(
        cluster=cluster, planner="placement", algorithm="mms", state="ready", origin="watch",
        actions=[{}, {}], predicted={"moves": 2, "bytes": 1000}, requested_at=timezone.now(),
        before={"replication_factor": 2.0}, after={"replication_factor": 1.0},
        bounds={"replication_factor": 1.0},
    )  # fmt: skip


def decided(plan: Proposal, moment: datetime | None = None, **settings: Any) -> PolicyDecision:
    policy = settings_of({"auto_kinds": ["placement"], **settings})
    return decide_auto_approval(plan, policy, moment or datetime(2026, 3, 4, 12, tzinfo=UTC))


def window(plan: Proposal, moment: datetime, begin: str, end: str, days: list[int] = []) -> str:  # noqa: B006
    return decided(plan, moment, auto_from=begin, auto_until=end, auto_days=days).code


def utc(day: date, hour: int, minute: int = 0) -> datetime:
    return datetime.combine(day, time(hour, minute), UTC)


@pytest.mark.parametrize(("begin", "end"), [("08:30", "17:45"), ("00:00", "06:00")])
def test_a_window_has_its_start_and_not_its_end(plan: Proposal, begin: str, end: str) -> None:
    start, stop = (datetime.combine(TUESDAY, time.fromisoformat(t), UTC) for t in (begin, end))
    moments = [start - INSTANT, start, stop - INSTANT, stop]
    codes = [window(plan, moment, begin, end) for moment in moments]
    assert codes == ["time", "allowed", "allowed", "time"]


def test_a_window_over_midnight_has_its_start_and_not_its_end(plan: Proposal) -> None:
    start, midnight = utc(MONDAY, 22), utc(TUESDAY, 0)
    stop = utc(TUESDAY, 6)
    moments = [start - INSTANT, start, midnight - INSTANT, midnight, stop - INSTANT, stop]
    codes = [window(plan, moment, "22:00", "06:00") for moment in moments]
    assert codes == ["time", "allowed", "allowed", "allowed", "allowed", "time"]


@pytest.mark.parametrize("day", range(7))
def test_every_day_of_the_week_is_its_own(plan: Proposal, day: int) -> None:
    """A day starts and ends at midnight."""
    inside = [utc(DAYS[day], 0), utc(DAYS[day], 0) + timedelta(days=1) - INSTANT]
    outside = [inside[0] - INSTANT, inside[1] + INSTANT]
    assert [decided(plan, moment, auto_days=[day]).code for moment in inside] == ["allowed"] * 2
    refusals = [decided(plan, moment, auto_days=[day]) for moment in outside]
    assert [refusal.code for refusal in refusals] == ["day", "day"]
    assert [refusal.number for refusal in refusals] == [(day - 1) % 7, (day + 1) % 7]


@pytest.mark.parametrize(
    ("days", "moment", "code"),
    [
        # The night from Sunday to Monday belongs to Sunday.
        ([6], utc(MONDAY, 5, 59), "allowed"),
        ([0], utc(MONDAY, 5, 59), "day"),
        ([0], utc(MONDAY, 6), "time"),
        ([6], utc(MONDAY, 6), "day"),
        ([0], utc(MONDAY, 22), "allowed"),
        ([0], utc(TUESDAY, 0), "allowed"),
        ([1], utc(TUESDAY, 0), "day"),
        ([6], utc(SUNDAY, 23), "allowed"),
    ],
)
def test_a_night_belongs_to_the_day_of_its_start(
    plan: Proposal, days: list[int], moment: datetime, code: str
) -> None:
    assert window(plan, moment, "22:00", "06:00", days) == code


def test_a_window_without_midnight_belongs_to_its_own_day(plan: Proposal) -> None:
    """Also before its start: only windows over midnight look at the day before."""
    assert window(plan, utc(TUESDAY, 5), "06:00", "22:00", [0]) == "day"
    assert window(plan, utc(TUESDAY, 5), "06:00", "22:00", [1]) == "time"


def test_a_refusal_has_the_hour_of_utc(plan: Proposal) -> None:
    refusal = decided(plan, utc(TUESDAY, 7, 46), auto_from="08:00", auto_until="09:00")
    assert (refusal.allowed, refusal.number, refusal.limit) == (False, 7.77, None)


def test_summer_time_moves_no_window(plan: Proposal) -> None:
    """Times of day are UTC: clocks that go forward or back in the caller's zone change nothing."""
    forward = datetime(2026, 3, 29, 3, 30, tzinfo=BERLIN)
    assert window(plan, forward, "01:00", "02:00") == "allowed"
    assert window(plan, forward - timedelta(days=1), "01:00", "02:00") == "time"
    first, second = (datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN, fold=fold) for fold in (0, 1))
    assert window(plan, first, "01:00", "02:00") == "time"
    assert window(plan, second, "01:00", "02:00") == "allowed"
    # Monday in Berlin, Sunday in UTC.
    night = datetime(2026, 3, 2, 0, 30, tzinfo=BERLIN)
    assert [decided(plan, night, auto_days=[day]).code for day in (6, 0)] == ["allowed", "day"]


def test_now_is_the_default_moment(plan: Proposal) -> None:
    policy = settings_of({"auto_kinds": ["placement"], "auto_days": [timezone.now().weekday()]})
    assert decide_auto_approval(plan, policy).code == "allowed"


@pytest.mark.parametrize(
    ("limits", "code", "number", "limit"),
    [
        ({"auto_moves": 2, "auto_bytes": 1000}, "allowed", 0.5, 0.05),
        ({"auto_moves": 1}, "moves", 2, 1),
        ({"auto_moves": 0}, "moves", 2, 0),
        ({"auto_bytes": 999}, "bytes", 1000, 999),
        ({"auto_bytes": 0}, "bytes", 1000, 0),
        ({"auto_gain": 0.5}, "allowed", 0.5, 0.5),
        ({"auto_gain": 0.51}, "gain", 0.5, 0.51),
        ({"watch_replication": 0.0}, "allowed", 0.5, 0.05),
    ],
)
def test_a_cap_allows_its_own_value(
    plan: Proposal, limits: dict[str, Any], code: str, number: float, limit: float
) -> None:
    decision = decided(plan, **limits)
    assert (decision.code, decision.number, decision.limit) == (code, number, limit)
    assert decision.allowed == (code == "allowed")


def test_a_plan_without_moves_is_within_caps_of_zero(plan: Proposal) -> None:
    plan.predicted = {}
    assert decided(plan, auto_moves=0, auto_bytes=0).code == "allowed"


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        (0.1, 0.2, "allowed"),
        (0.1, 0.2000001, "spoils"),
        (0.3, 0.3, "allowed"),
        (0.3, 0.3000005, "allowed"),
        (0.3, 0.300002, "spoils"),
        (0.3, 0.25, "allowed"),
    ],
)
def test_a_measure_above_its_limit_may_not_grow(
    plan: Proposal, before: float, after: float, code: str
) -> None:
    plan.before |= {"skew": before}
    plan.after |= {"skew": after}
    decision = decided(plan, watch_skew=0.2)
    assert decision.code == code
    if code == "spoils":
        assert (decision.number, decision.limit) == (after, 0.2)


def test_the_limit_of_replication_is_above_what_placement_reaches(plan: Proposal) -> None:
    plan.before |= {"imbalance": 1.0, "replication_factor": 2.9}
    plan.after |= {"imbalance": 0.1, "replication_factor": 3.0}
    reachable(plan.cluster, 2.0)
    assert decided(plan, watch_replication=0.5).code == "allowed"
    spoilt = decided(plan, watch_replication=0.4)
    assert (spoilt.code, spoilt.number) == ("spoils", 3.0)
    assert spoilt.limit == pytest.approx(2.8)


@pytest.mark.parametrize(
    ("runs", "error", "code", "number", "limit"),
    [
        (2, 0.5, "allowed", 0.5, 0.05),
        (3, 0.5, "record", 2, 3),
        (2, 0.49, "record", 0.5, 0.49),
        (0, 0.5, "allowed", 0.5, 0.05),
    ],
)
def test_a_record_is_good_with_just_its_runs_and_error(
    plan: Proposal, runs: int, error: float, code: str, number: float, limit: float
) -> None:
    for _ in range(2):
        entry(plan.cluster, {"imbalance": 1.0}, {"imbalance": 1.5})
    decision = decided(plan, auto_record=True, auto_record_runs=runs, auto_record_error=error)
    assert (decision.code, decision.number, decision.limit) == (code, number, limit)
    assert decided(plan, auto_record_runs=1000).code == "allowed", "records do not matter"


def test_a_planner_without_runs_has_no_good_record(plan: Proposal) -> None:
    decision = decided(plan, auto_record=True, auto_record_runs=0)
    assert (decision.code, decision.number, decision.limit) == ("record", None, 0.25)
