"""The small charts that the server draws."""

import re

from controlplane.explain.units import ValueUnit
from controlplane.explain.values import Series
from dashboard.explain.plot import plot_of

TIMES = [0, 60_000, 120_000]


def levels(limits: list[float | None]) -> int:
    """Return at how many heights the limit of a drawing is."""
    series = Series("Factor", ValueUnit.RATIO, TIMES, [1.0] * 3, limit=2.0, limits=limits)
    plot = plot_of(series, "")
    assert plot is not None
    return len(set(re.findall(r"[\d.]+[ ,]([\d.]+)", plot.limit_path)))


def test_a_limit_that_moved_is_drawn_in_steps() -> None:
    assert levels([]) == 1
    assert levels([1.5, 1.5, 2.0]) == 2
    assert levels([None, 1.5, 2.0]) == 2
