"""Numbers as a person reads them."""

from datetime import UTC, datetime, timedelta

import pytest

from controlplane import numbers

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, numbers.MISSING), (0, "0"), (0.417, "0.42"), (7.5, "7.50"), (81.26, "81.3"),
     (1234.4, "1,234"), (9999.0, "9,999"), (12_345, "12.3 k"), (2.5e8, "250 M"), (-0.5, "-0.50")],
)  # fmt: skip
def test_compact(value: float | None, shown: str) -> None:
    assert numbers.compact(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.054, "5.4 %"), (0.05, "5 %"), (0, "0 %"), (0.25, "25 %"), (1.2, "120 %"),
     (0.0005, "0.1 %"), (0.00049, "< 0.1 %"), (1e-9, "< 0.1 %")],
)  # fmt: skip
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


@pytest.mark.parametrize(
    ("ago", "shown"), [(3, "3 s ago"), (600, "10 min ago"), (7200, "2 h ago"), (-90, "in 2 min")]
)
def test_age(ago: float, shown: str) -> None:
    assert numbers.age(NOW - timedelta(seconds=ago), NOW) == shown


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [(None, "ms", numbers.MISSING), (812, "ms", "812 ms"), (15_900, "ms", "15.9 s"),
     (720_000, "ms", "12 min"), (5.25, "s", "5.2 s"), (80, "s", "80 s"), (900, "s", "15 min"),
     (0.256, "share", "26 %"), (1.256, "ratio", "1.26"), (12_345, "count", "12.3 k"),
     (100, "count", "100"), (1_200, "bytes", "1.2 kB"), (2640, "records/s", "2,640/s"),
     (1, "queries", "1 query"), (1, "moves", "1 move"), (2, "moves", "2 moves")],
)  # fmt: skip
def test_a_value_has_its_unit(value: float | None, unit: str, shown: str) -> None:
    assert numbers.value_text(value, unit) == shown
