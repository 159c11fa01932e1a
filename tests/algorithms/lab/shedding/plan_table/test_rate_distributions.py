import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.errors import BadProblem
from algorithms.lab.shedding.plan_table.rate_distributions import (
    ExponentialRates,
    MeasuredRates,
    RateDistribution,
)
from algorithms.lab.shedding.plan_table.region_quadtree import RegionQuadtree
from algorithms.lab.shedding.real_workloads import recorded_rates

SERIES = [[1.0, 2.0], [1.0, 2.0], [0.0, 5.0], [4.0, 0.0]]


def boxes(*rows: tuple[float, ...]) -> Any:
    return np.array(rows, np.float64)


def test_an_exponential_rate_has_the_density_of_its_mean() -> None:
    rates = ExponentialRates(np.array([2.0, 5.0]))
    (part,) = rates.probabilities(boxes((1, 0)), boxes((3, math.inf)))
    assert part == pytest.approx(math.exp(-1 / 2) - math.exp(-3 / 2))
    (both,) = rates.probabilities(boxes((1, 5)), boxes((3, 10)))
    assert both == pytest.approx(part * (math.exp(-1) - math.exp(-2)))


def test_small_boxes_far_out_keep_their_precision() -> None:
    (part,) = ExponentialRates(np.array([1.0])).probabilities(boxes((30,)), boxes((30 + 1e-9,)))
    assert part == pytest.approx(1e-9 * math.exp(-30), rel=1e-5)


def test_a_mean_of_zero_is_the_rate_zero() -> None:
    rates = ExponentialRates(np.array([0.0, 1.0]))
    parts = rates.probabilities(boxes((0, 0), (1, 0)), boxes((1, math.inf), (2, math.inf)))
    assert parts.tolist() == [1, 0]
    assert rates.sample(5, np.random.default_rng(0))[:, 0].tolist() == [0] * 5


def test_measured_rates_are_counted_jointly() -> None:
    """The marginal distributions alone would give the box (0..2, 0..3) 3/4 x 3/4."""
    rates = MeasuredRates.of(SERIES)
    assert len(rates.rates) == 3
    parts = rates.probabilities(boxes((0, 0), (1, 2), (0, 0)), boxes((2, 3), (2, 3), (4, 9)))
    assert parts.tolist() == [0.5, 0.5, 0.75]


def test_the_marginal_of_measured_rates_merges_equal_rates() -> None:
    marginal = MeasuredRates.of([[1.0, 2.0], [1.0, 3.0], [0.0, 5.0]]).marginal(np.array([0]))
    assert marginal.rates.tolist() == [[0], [1]]
    assert marginal.parts == pytest.approx([1 / 3, 2 / 3])
    exponential = ExponentialRates(np.array([1.0, 2.0])).marginal(np.array([1]))
    assert exponential.means.tolist() == [2]


@pytest.mark.parametrize(
    "rates",
    [
        ExponentialRates(np.array([3.0, 9.0])),
        MeasuredRates.of(SERIES),
        MeasuredRates.of(recorded_rates("llm_code_vs_conv_10s")),
    ],
)
@given(st.lists(st.integers(0, 1000), max_size=6))
def test_the_probabilities_of_disjoint_boxes_sum_to_that_of_the_space(
    rates: RateDistribution, divided: list[int]
) -> None:
    tree = RegionQuadtree(np.array([20.0, 30.0]))
    whole = rates.probabilities(*tree.intervals([0])).sum()
    for number in divided:
        leaves = list(tree.leaves())
        tree.divide(leaves[number % len(leaves)])
    parts = rates.probabilities(*tree.intervals(list(tree.leaves())))
    assert (parts >= 0).all()
    assert parts.sum() == pytest.approx(whole)


@pytest.mark.parametrize(
    "rates", [ExponentialRates(np.array([3.0, 9.0])), MeasuredRates.of(SERIES)]
)
def test_samples_follow_the_probabilities(rates: RateDistribution) -> None:
    """With 100,000 samples the standard deviation of a part is at most 0.0016."""
    samples = rates.sample(100_000, np.random.default_rng(3))
    low, stop = boxes((0, 0), (1, 2), (2, 0)), boxes((2, 6), (3, 9), (9, 1))
    for part, first, last in zip(rates.probabilities(low, stop), low, stop, strict=True):
        inside = ((samples >= first) & (samples < last)).all(axis=1)
        assert inside.mean() == pytest.approx(part, abs=0.01)


@pytest.mark.parametrize(
    ("series", "why"),
    [
        ([], "rows of rates"),
        ([1.0, 2.0], "rows of rates"),
        ([[1.0], [1.0, 2.0]], "rows of rates"),
        ([["many"]], "rows of rates"),
        ([[1.0, -1.0]], r"series\[1\]: must be finite and not negative, not -1"),
        ([[math.nan]], "must be finite"),
    ],
)
def test_a_bad_series_is_rejected(series: Any, why: str) -> None:
    with pytest.raises(BadProblem, match=why):
        MeasuredRates.of(series)


def test_a_series_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("algorithms.lab.shedding.plan_table.rate_distributions.MAX_MEASURED", 7)
    with pytest.raises(BadProblem, match="at most 7 rates, not 8"):
        MeasuredRates.of(SERIES)


def test_a_bad_mean_is_rejected() -> None:
    with pytest.raises(BadProblem, match=r"means\[1\]"):
        ExponentialRates(np.array([1.0, -1.0]))
