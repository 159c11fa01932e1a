"""Estimates over all records: unbiased, and their intervals contain the truth 95 times in 100."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from controlplane.results.estimates import ResultEstimate, estimates_of, scaled_count, scaled_sum
from controlplane.wire.aggregates.sampling import Sampled
from controlplane.wire.language.tree import Kind
from controlplane.wire.query import Computation, computation_of
from controlplane.wire.query_text import QueryText

KINDS = {"x": Kind.FLOAT, "n": Kind.INT}
FRACTIONS = st.floats(0.05, 0.99)
RUNS = 4_000


def sample(records: int, *parts: tuple[int, float]) -> Sampled:
    """Return a sample: so many records without risk, and of each part some kept with a chance."""
    missing = sum(kept * (1 / chance - 1) for kept, chance in parts)
    variance = sum(kept / chance * (1 / chance - 1) for kept, chance in parts)
    return Sampled(records + sum(kept for kept, _ in parts), missing, variance)


def computation(**aggregates: str) -> Computation:
    return computation_of(QueryText(aggregates), KINDS)


@pytest.mark.parametrize("records", [12, 40, 3_000])
@pytest.mark.parametrize("fraction", [0.1, 0.5, 0.9])
def test_counts_are_unbiased_and_covered(records: int, fraction: float) -> None:
    """A window of which no record is kept has no row: it counts as 0, without an interval."""
    kept = np.random.default_rng(1).binomial(records, fraction, RUNS).tolist()
    estimates = [scaled_count(count, sample(0, (count, fraction))) for count in kept if count]
    sd = math.sqrt(records * (1 - fraction) / fraction)
    mean = sum(estimate.value for estimate in estimates) / RUNS
    assert mean == pytest.approx(records, abs=4 * sd / math.sqrt(RUNS))
    assert 0.92 < covered(estimates, records) < 0.995


@pytest.mark.parametrize("share", [1.0, 0.3])
def test_records_under_several_rules_are_covered(share: float) -> None:
    """Without risk, and with chances of a half, of a tenth; `share`: of them the counted ones."""
    rng = np.random.default_rng(3)
    estimates = []
    for _ in range(RUNS):
        parts = [(int(rng.binomial(n, chance)), chance) for n, chance in ((300, 0.5), (200, 0.1))]
        sampled = sample(100, *parts)
        counts = [rng.binomial(100, share), *(rng.binomial(kept, share) for kept, _ in parts)]
        lost = 500 - sum(kept for kept, _ in parts)
        estimate = scaled_count(int(sum(counts)), sampled)
        assert estimate.low is not None
        assert estimate.high is not None
        truth = sum(counts) + rng.binomial(lost, share)
        estimates.append(estimate.low <= truth <= estimate.high)
    assert 0.93 < sum(estimates) / RUNS < 0.97


@pytest.mark.parametrize("fraction", [0.2, 0.5, 0.9])
def test_sums_are_unbiased_and_covered(fraction: float) -> None:
    rng = np.random.default_rng(2)
    values = rng.exponential(10, 400) - 3
    estimates, bounded = [], []
    aggregates = {"total": "sum(x)", "n": "count(x)", "spread": "stddev(x)"}
    exact = computation(**aggregates)
    wide = computation(total="sum(x)", n="count(*)", low="min(x)", high="max(x)")
    for _ in range(RUNS):
        taken = values[rng.random(len(values)) < fraction]
        known: dict[str, Any] = {
            "total": float(taken.sum()), "n": len(taken), "spread": float(taken.std(ddof=1)),
            "low": float(taken.min()), "high": float(taken.max()),
        }  # fmt: skip
        sampled = sample(0, (len(taken), fraction))
        estimates.append(estimates_of(exact, known, sampled)["total"])
        bounded.append(estimates_of(wide, known, sampled)["total"])
    truth = float(values.sum())
    sd = math.sqrt((1 - fraction) / fraction * float(values @ values))
    mean = np.mean([estimate.value for estimate in estimates])
    assert mean == pytest.approx(truth, abs=4 * sd / math.sqrt(RUNS))
    assert 0.92 < covered(estimates, truth) < 0.98
    assert covered(bounded, truth) >= covered(estimates, truth), "bounds make it wider"


def covered(estimates: list[ResultEstimate], truth: float) -> float:
    """Return the share of the intervals with the truth."""
    inside = [e.low is not None and e.high is not None and e.low <= truth <= e.high
              for e in estimates]  # fmt: skip
    return sum(inside) / len(inside)


@given(st.integers(0, 10**9), st.integers(0, 10**9), FRACTIONS)
@example(0, 1, 0.59375)
@example(0, 7, 0.99)
def test_intervals_of_counts_are_in_order(count: int, others: int, fraction: float) -> None:
    """Of a part of the kept records: whatever rounding does, each end is on its side."""
    assume(count + others)
    sampled = sample(0, (count + others, fraction))
    value, low, high = scaled_count(count, sampled)
    assert low is not None
    assert high is not None
    assert count <= low <= value <= high
    assert value == pytest.approx(count / fraction)
    assert low < value < high or not count
    if count > 10**5:
        reach = 1.96 * math.sqrt(count * (1 - fraction)) / fraction
        assert (low, high) == pytest.approx((value - reach, value + reach), rel=1e-3)


@given(
    st.integers(0, 10**6),
    st.lists(st.tuples(st.integers(1, 10**6), FRACTIONS), min_size=1, max_size=4),
    st.floats(0, 1),
)
def test_intervals_under_several_rules_are_in_order(
    safe: int, parts: list[tuple[int, float]], share: float
) -> None:
    sampled = sample(safe, *parts)
    count = round(share * sampled.records)
    value, low, high = scaled_count(count, sampled)
    assert low is not None
    assert high is not None
    assert count <= low <= value <= high


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30), FRACTIONS)
def test_the_sum_of_squares_is_known_or_bounded(values: list[float], fraction: float) -> None:
    """From each set of aggregates that determines or bounds it."""
    column = np.array(values)
    squares, total = float(column @ column), float(column.sum())
    assume(squares > 1e-6)
    known: dict[str, Any] = {
        "total": total, "n": len(values),
        "variance": float(column.var(ddof=1)), "deviation": float(column.std(ddof=1)),
        "low": min(values), "high": max(values),
    }  # fmt: skip
    whole = sample(0, (len(values), fraction))
    expected = scaled_sum(total, whole, squares)
    assert expected.high is not None
    for spread in ("variance", "stddev"):
        name = {"variance": "variance", "stddev": "deviation"}[spread]
        exact = computation(total="sum(x)", n="count(x)", **{name: f"{spread}(x)"})
        estimate = estimates_of(exact, known, whole)["total"]
        assert estimate == pytest.approx(expected, rel=1e-6, abs=1e-3)
    for count in ({"n": "count(x)"}, {}):
        wide = computation(total="sum(x)", low="min(x)", high="max(x)", **count)
        high = estimates_of(wide, known, whole)["total"].high
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
    estimates = estimates_of(some, values, sample(0, (4, 0.5)))
    assert estimates["total"] == ResultEstimate(20.0), "its values are not known"
    assert estimates["n"] == scaled_count(4, sample(0, (4, 0.5)))
    assert estimates.keys() == {"n", "total"}


@pytest.mark.parametrize("value", [None, "NaN", "Infinity", True, [1], "many"])
def test_values_that_are_no_finite_number_are_not_scaled(value: object) -> None:
    some = computation(total="sum(x)")
    assert estimates_of(some, {"total": value}, sample(0, (4, 0.5))) == {}


@pytest.mark.parametrize(("total", "shown"), [(1e200, ResultEstimate(2e200)), (1.5e308, None)])
def test_intervals_beyond_floats_are_left_out(total: float, shown: ResultEstimate | None) -> None:
    some = computation(total="sum(x)", n="count(x)", spread="variance(x)")
    values = {"total": total, "n": 4, "spread": 1e300}
    assert estimates_of(some, values, sample(0, (4, 0.5))).get("total") == shown


def test_decimals_are_scaled_as_numbers() -> None:
    some = computation(total="sum(x)")
    assert estimates_of(some, {"total": "12.5"}, sample(0, (4, 0.5)))["total"].value == 25.0
