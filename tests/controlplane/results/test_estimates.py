"""Estimates over all records: unbiased, and their intervals contain the truth 95 times in 100."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from controlplane.results.estimates import Estimate, estimates_of, scaled_count, scaled_sum
from controlplane.results.kept import EXACT, UNKNOWN, Kept
from controlplane.wire.language.tree import Kind
from controlplane.wire.query import Computation, computation_of
from controlplane.wire.query_text import QueryText

KINDS = {"x": Kind.FLOAT, "n": Kind.INT}
FRACTIONS = st.floats(0.05, 0.99)
RUNS = 4_000


def computation(**aggregates: str) -> Computation:
    return computation_of(QueryText(aggregates), KINDS)


@pytest.mark.parametrize("records", [12, 40, 3_000])
@pytest.mark.parametrize("fraction", [0.1, 0.5, 0.9])
def test_counts_are_unbiased_and_covered(records: int, fraction: float) -> None:
    kept = np.random.default_rng(1).binomial(records, fraction, RUNS)
    estimates = [scaled_count(int(count), fraction) for count in kept]
    sd = math.sqrt(records * (1 - fraction) / fraction)
    mean = np.mean([estimate.value for estimate in estimates])
    assert mean == pytest.approx(records, abs=4 * sd / math.sqrt(RUNS))
    assert 0.92 < covered(estimates, records) < 0.995


@pytest.mark.parametrize("fraction", [0.2, 0.5, 0.9])
def test_sums_are_unbiased_and_covered(fraction: float) -> None:
    rng = np.random.default_rng(2)
    values = rng.exponential(10, 400) - 3
    estimates, bounded = [], []
    aggregates = {"total": "sum(x)", "n": "count(x)", "spread": "stddev(x)"}
    exact = computation(**aggregates)
    wide = computation(total="sum(x)", n="count(*)", low="min(x)", high="max(x)")
    for _ in range(RUNS):
        sample = values[rng.random(len(values)) < fraction]
        known: dict[str, Any] = {
            "total": float(sample.sum()), "n": len(sample), "spread": float(sample.std(ddof=1)),
            "low": float(sample.min()), "high": float(sample.max()),
        }  # fmt: skip
        estimates.append(estimates_of(exact, known, Kept(fraction))["total"])
        bounded.append(estimates_of(wide, known, Kept(fraction))["total"])
    truth = float(values.sum())
    sd = math.sqrt((1 - fraction) / fraction * float(values @ values))
    mean = np.mean([estimate.value for estimate in estimates])
    assert mean == pytest.approx(truth, abs=4 * sd / math.sqrt(RUNS))
    assert 0.92 < covered(estimates, truth) < 0.98
    assert covered(bounded, truth) >= covered(estimates, truth), "bounds make it wider"


def covered(estimates: list[Estimate], truth: float) -> float:
    """Return the share of the intervals with the truth."""
    inside = [e.low is not None and e.high is not None and e.low <= truth <= e.high
              for e in estimates]  # fmt: skip
    return sum(inside) / len(inside)


@given(st.integers(0, 10**9), FRACTIONS)
def test_intervals_of_counts_are_in_order(count: int, fraction: float) -> None:
    value, low, high = scaled_count(count, fraction)
    assert low is not None
    assert high is not None
    assert count <= low <= value * (1 + 1e-9)
    assert value < high
    if count > 10**5:
        reach = 1.96 * math.sqrt(count * (1 - fraction)) / fraction
        assert (low, high) == pytest.approx((value - reach, value + reach), rel=1e-3)


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30), FRACTIONS)
def test_the_sum_of_squares_is_known_or_bounded(values: list[float], fraction: float) -> None:
    """From each set of aggregates that determines or bounds it."""
    column = np.array(values)
    squares, total = float(column @ column), float(column.sum())
    assume(squares > 1e-6)
    known: dict[str, Any] = {
        "total": total, "n": len(values), "records": len(values) + 3,
        "variance": float(column.var(ddof=1)), "deviation": float(column.std(ddof=1)),
        "low": min(values), "high": max(values),
    }  # fmt: skip
    expected = scaled_sum(total, fraction, squares)
    assert expected.high is not None
    for spread in ("variance", "stddev"):
        name = {"variance": "variance", "stddev": "deviation"}[spread]
        exact = computation(total="sum(x)", n="count(x)", **{name: f"{spread}(x)"})
        estimate = estimates_of(exact, known, Kept(fraction))["total"]
        assert estimate == pytest.approx(expected, rel=1e-6, abs=1e-3)
    for count in ({"n": "count(x)"}, {"records": "count(*)"}):
        wide = computation(total="sum(x)", low="min(x)", high="max(x)", **count)
        high = estimates_of(wide, known, Kept(fraction))["total"].high
        assert high is not None
        assert high >= expected.high - 1e-6 * (1 + abs(expected.high))


def test_what_cannot_be_scaled_has_no_estimate() -> None:
    some = computation(
        n="count(*)",
        total="sum(x)",
        smallest="min(x)",
        mean="mean(x)",
        distinct="count_distinct(n)",
    )
    values = {"n": 4, "total": 10.0, "smallest": 1.0, "mean": 2.5, "distinct": 4}
    estimates = estimates_of(some, values, Kept(0.5))
    assert estimates["total"] == Estimate(20.0), "its values are not known"
    assert estimates["n"] == scaled_count(4, 0.5)
    assert estimates.keys() == {"n", "total"}
    for kept in (EXACT, UNKNOWN, Kept(0.0)):
        assert estimates_of(some, values, kept) == {}


def test_records_that_are_not_dropped_independently_have_no_interval() -> None:
    kept = Kept(0.25, is_random=False)
    assert estimates_of(computation(n="count(*)"), {"n": 5}, kept) == {"n": Estimate(20.0)}


@pytest.mark.parametrize("value", [None, "NaN", "Infinity", True, [1], "many"])
def test_values_that_are_no_finite_number_are_not_scaled(value: object) -> None:
    assert estimates_of(computation(total="sum(x)"), {"total": value}, Kept(0.5)) == {}


def test_decimals_are_scaled_as_numbers() -> None:
    some = computation(total="sum(x)")
    assert estimates_of(some, {"total": "12.5"}, Kept(0.5))["total"].value == 25.0


def test_pairs_of_joins_are_not_scaled() -> None:
    text = QueryText({"n": "count(*)"}, right=[2], on=[["n", "n"]])
    assert estimates_of(computation_of(text, KINDS), {"n": 5}, Kept(0.5)) == {}
