"""Numbers as a person reads them."""

from datetime import UTC, datetime, timedelta

import pytest

from dashboard import numbers
from dashboard.templatetags.design import bullet, spark
from dashboard.time_range import DEFAULT, RANGES, time_range_of

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, numbers.MISSING), (0, "0"), (0.417, "0.42"), (7.5, "7.50"), (81.26, "81.3"),
     (1234.4, "1,234"), (9999.0, "9,999"), (12_345, "12.3 k"), (2.5e8, "250 M"), (-0.5, "-0.50")],
)  # fmt: skip
def test_compact(value: float | None, shown: str) -> None:
    assert numbers.compact(value) == shown


@pytest.mark.parametrize(("value", "shown"), [(0.054, "5.4 %"), (0.25, "25 %"), (1.2, "120 %")])
def test_percent(value: float, shown: str) -> None:
    assert numbers.percent(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(None, numbers.MISSING), (0, "0"), (0.0042, "0.4"), (0.16, "16")]
)
def test_points(value: float | None, shown: str) -> None:
    assert numbers.points(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(0.08, "↑ 8.0"), (-0.2, "↓ 20"), (0.0001, "→ 0"), (None, numbers.MISSING)]
)
def test_change_in_points(value: float | None, shown: str) -> None:
    assert numbers.change_in_points(value) == shown


def test_a_bullet_has_a_tick_at_its_limit() -> None:
    drawn = bullet(0.5, 1.0, "warn")
    assert 'width="41.7%"' in drawn
    assert 'x1="83.3%"' in drawn
    assert bullet(0.0, None) == ""


@pytest.mark.parametrize(
    ("ago", "shown"), [(3, "3 s ago"), (600, "10 min ago"), (7200, "2 h ago"), (-90, "in 2 min")]
)
def test_age(ago: float, shown: str) -> None:
    assert numbers.age(NOW - timedelta(seconds=ago), NOW) == shown


def test_a_named_range_ends_now() -> None:
    span = time_range_of({"range": "1h"}, NOW)
    assert (span.end, span.end - span.start, span.live) == (NOW, RANGES["1h"], True)


def test_a_fixed_range_is_reproduced_by_its_own_query_string() -> None:
    """Who sends the URL to a colleague sends the view."""
    span = time_range_of({"from": "2026-11-20T10:00:00+00:00", "to": "2026-11-20T11:00"}, NOW)
    parts = dict(part.split("=") for part in span.query.split("&"))
    assert time_range_of(parts, NOW) == span
    assert not span.live


@pytest.mark.parametrize(
    "values",
    [{"range": "1y"}, {"from": "x"}, {"from": "9" * 30}, {"from": "2027-01-01"}, {"to": "5"}],
)
def test_nonsense_gives_the_default_range(values: dict[str, str]) -> None:
    assert time_range_of(values, NOW).name == DEFAULT


def test_a_sparkline_says_what_it_shows_and_escapes_it() -> None:
    drawn = spark([1.0, 2.0, None, 3.0], "<b>rate</b>")
    assert "<b>" not in drawn
    assert drawn.count("M") == 2


def test_one_value_is_no_line() -> None:
    assert spark([1.0], "rate") == ""
