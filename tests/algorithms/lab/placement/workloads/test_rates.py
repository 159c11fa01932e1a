"""Rates of section 6.4: the Pareto law and its correlation with popularity."""

from typing import Any

import numpy as np
import pytest

from algorithms.errors import BadParameters
from algorithms.lab.placement.workloads import bipartite
from algorithms.lab.placement.workloads.rates import Correlation, correlate_rates, pareto_rates

READERS = bipartite(5_000, 2, 1.2, seed=0).readers


def rank_correlation(left: Any, right: Any) -> float:
    """Return Spearman's coefficient of two samples."""
    from scipy.stats import spearmanr  # noqa: PLC0415 - a second, in every process that collects

    return float(spearmanr(left, right).statistic)


@pytest.mark.parametrize("shape", [1.0, 2.0, 3.0])
def test_the_shape_can_be_recovered(shape: float) -> None:
    """The likeliest shape of a Pareto sample is the inverse mean of its logarithms."""
    rates = pareto_rates(100_000, shape, seed=3)
    assert rates.min() >= 1.0
    assert 1 / np.log(rates).mean() == pytest.approx(shape, rel=0.02)


@pytest.mark.parametrize(
    ("correlation", "least", "most"),
    [
        ("random", -0.1, 0.1),
        ("positive", 0.9, 1.0),
        ("negative", -1.0, -0.9),
        ("proportional", 0.5, 1.0),
        ("inverse", -1.0, -0.5),
    ],
)
def test_rates_go_with_popularity_as_asked(
    correlation: Correlation, least: float, most: float
) -> None:
    """Rank correlation over sources; ties in popularity keep it below 1."""
    rates = correlate_rates(pareto_rates(len(READERS), 2.0, 1), READERS, correlation, 2)
    assert least <= rank_correlation(rates, READERS) <= most


@pytest.mark.parametrize("correlation", ["random", "positive", "negative"])
def test_correlating_only_rearranges(correlation: Correlation) -> None:
    """All three cases of the figure have the same rates, so that only who has them differs."""
    drawn = pareto_rates(len(READERS), 1.0, 1)
    rates = correlate_rates(drawn, READERS, correlation, 2)
    assert np.sort(rates).tolist() == np.sort(drawn).tolist()


def test_equally_popular_sources_are_ranked_at_random() -> None:
    """Else the numbers of sources would decide, and ties between servers go by number too."""
    drawn = pareto_rates(1_000, 2.0, 1)
    rates = correlate_rates(drawn, np.ones(1_000, np.int64), "positive", 2)
    assert abs(rank_correlation(rates, np.arange(1_000))) < 0.1


def test_proportional_multiplies_and_inverse_divides() -> None:
    """A source without readers keeps a finite rate."""
    rates, readers = np.array([2.0, 3.0, 5.0]), np.array([4, 1, 0])
    assert correlate_rates(rates, readers, "proportional", 0).tolist() == [8.0, 3.0, 0.0]
    assert correlate_rates(rates, readers, "inverse", 0).tolist() == [0.5, 3.0, 5.0]


def test_a_shape_that_is_not_positive_is_refused() -> None:
    """There is no such law."""
    with pytest.raises(BadParameters, match="above 0"):
        pareto_rates(10, 0.0, 1)
