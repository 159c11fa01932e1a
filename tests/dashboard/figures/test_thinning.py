"""Samples for a chart: few enough, peaks kept, gaps seen."""

from hypothesis import given
from hypothesis import strategies as st

from dashboard.figures.thinning import thin_samples, with_gaps


def sample(t: int, **values: float | None) -> dict[str, float | None]:
    return {"t": t, **values}


@given(st.integers(0, 60), st.integers(1, 20))
def test_never_more_points_than_asked(count: int, points: int) -> None:
    """A week of minutes must not stall the browser."""
    found = thin_samples([sample(1000 * i) for i in range(count)], points)
    assert len(found) <= points
    assert bool(found) == bool(count)


def test_a_peak_of_a_duration_survives_and_a_rate_is_averaged() -> None:
    """The chart of a week must show the bad minute."""
    samples = [
        sample(1, duration_ms=100.0, input=10.0),
        sample(2, duration_ms=9000.0, input=1000.0),
    ]
    merged = thin_samples(samples, 1)[0]
    assert merged["duration_ms"] == 9000.0
    assert merged["input"] == 505.0
    assert merged["t"] == 2


def test_nothing_known_stays_nothing() -> None:
    assert thin_samples([sample(1, rf=None), sample(2, rf=None)], 1)[0]["rf"] is None


def test_a_gap_has_an_empty_sample_at_both_ends() -> None:
    """Without it a line would run straight across an outage."""
    shown = with_gaps([sample(0), sample(1000), sample(2000), sample(90_000)])
    assert [one["t"] for one in shown] == [0, 1000, 2000, 2001, 89_999, 90_000]
    assert "rf" not in shown[3]
