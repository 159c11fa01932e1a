"""Distinct keys and Zipf exponents, against streams whose keys are known."""

import numpy as np
import pytest

from algorithms.partitioning.key_statistics import estimate_distinct, zipf_exponent


def sampled(exponent: float, distinct: int, records: int, seed: int = 1) -> np.ndarray:
    """Return the records per key in a sample of a Zipf stream, without absent keys."""
    weights = np.arange(1, distinct + 1, dtype=np.float64) ** -exponent
    drawn = np.random.default_rng(seed).multinomial(records, weights / weights.sum())
    return drawn[drawn > 0]


def test_a_complete_sample_is_counted() -> None:
    assert estimate_distinct([5, 3, 2, 2]) == 4
    assert estimate_distinct([]) == 0


@pytest.mark.parametrize("distinct", [200, 2_000, 20_000])
def test_uniform_keys_are_estimated_from_a_part(distinct: int) -> None:
    """A sample of as many records as keys has two thirds of them."""
    counts = sampled(0.0, distinct, distinct)
    assert len(counts) < 0.7 * distinct
    assert estimate_distinct(counts) == pytest.approx(distinct, rel=0.1)


def test_a_skewed_stream_is_estimated_better_than_by_counting() -> None:
    counts = sampled(1.0, 10_000, 20_000)
    estimate = estimate_distinct(counts)
    assert len(counts) < estimate < 1.3 * 10_000
    assert abs(estimate - 10_000) < 0.6 * (10_000 - len(counts))


def test_one_hot_key_does_not_multiply_the_others() -> None:
    counts = [10_000, *sampled(0.0, 1_000, 2_000)]
    assert estimate_distinct(counts) == pytest.approx(1_001, rel=0.1)


def test_singletons_alone_give_a_finite_number() -> None:
    assert estimate_distinct([1]) >= 1
    assert estimate_distinct([1] * 50) >= 50


@pytest.mark.parametrize("exponent", [0.0, 0.6, 1.0, 1.5, 2.0])
def test_the_exponent_is_found(exponent: float) -> None:
    counts = sampled(exponent, 1_000, 400_000)
    assert zipf_exponent(counts) == pytest.approx(exponent, abs=0.05)


def test_few_keys_have_no_exponent() -> None:
    assert zipf_exponent([100, 50, 20, 10]) is None
    assert zipf_exponent([100, 50, 20, 10, 4, 4]) is None
    assert zipf_exponent([]) is None
