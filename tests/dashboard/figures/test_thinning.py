"""Samples for a chart: few enough, peaks kept, gaps seen."""

from hypothesis import given
from hypothesis import strategies as st

from dashboard.figures.thinning import thin_samples, with_gaps
from tests.dashboard.conftest import sample


@given(st.integers(0, 60), st.integers(1, 20))
def test_never_more_points_than_asked(count: int, points: int) -> None:
    """A week of minutes must not stall the browser."""
    found = thin_samples([sample(1000 * i) for i in range(count)], points)
    assert len(found) <= points
    assert bool(found) == bool(count)


def test_a_peak_of_latency_survives_and_a_rate_is_averaged() -> None:
    """The chart of a week must show the bad minute."""
    merged = thin_samples([sample(1, p95=100.0, **{"in": 10.0}), sample(2, p95=9000.0)], 1)[0]
    assert merged["p95"] == 9000.0
    assert merged["in"] == 505.0
    assert merged["t"] == 2


def test_loads_are_averaged_node_by_node() -> None:
    found = thin_samples([sample(1, loads=[1.0, 5.0]), sample(2, loads=[3.0, 7.0])], 1)[0]
    assert found["loads"] == [2.0, 6.0]


def test_nothing_known_stays_nothing() -> None:
    assert thin_samples([sample(1, rf=None), sample(2, rf=None)], 1)[0]["rf"] is None


def test_a_gap_has_an_empty_sample_at_both_ends() -> None:
    """Without it a line would run straight across an outage."""
    shown = with_gaps([sample(0), sample(1000), sample(2000), sample(90_000)])
    assert [one["t"] for one in shown] == [0, 1000, 2000, 2001, 89_999, 90_000]
    assert "rf" not in shown[3]
