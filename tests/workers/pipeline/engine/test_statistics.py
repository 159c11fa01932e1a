"""Variances against exact fractions: of any numbers, in any batches and panes."""

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from controlplane.wire.language.tree import Kind
from controlplane.wire.query_text import QueryText
from tests.support.nightly import by_night
from tests.workers.pipeline.engine.running import results

DECIMAL = pa.decimal128(38, 9)
LEAST, MOST = -(2**63), 2**63 - 1
LARGEST = 10**38 - 1
BOTH = {"v": "variance(x)", "s": "stddev(x)"}
WHOLE = st.one_of(
    st.integers(LEAST, MOST), st.integers(-9, 9), st.integers(MOST - 9, MOST),
    st.integers(LEAST, LEAST + 9), st.sampled_from([0, 2**31, 3_037_000_500, -(2**32)]),
)  # fmt: skip
UNITS = st.one_of(
    st.integers(-LARGEST, LARGEST), st.integers(LARGEST - 9, LARGEST), st.integers(-9, 9),
    WHOLE.map(lambda number: number * 10**9),
)  # fmt: skip


def exact(values: Sequence[Any]) -> Fraction | None:
    """Return the variance of a sample without rounding, None of fewer than two values."""
    numbers = [Fraction(value) for value in values if value is not None]
    if len(numbers) < 2:
        return None
    mean = sum(numbers, Fraction(0)) / len(numbers)
    distances = [number - mean for number in numbers]
    return sum((d * d for d in distances), Fraction(0)) / (len(numbers) - 1)


def computed(kind: Kind, batches: Sequence[Any], **how: int) -> list[tuple[Any, Any, Any]]:
    """Return key, variance and deviation of each window; the key of a value is its place modulo 3.

    Sliding windows of panes, of which the first has all values.
    """
    text = QueryText(BOTH, key=["k"], window_s=4.0, slide_s=2.0)
    columns = [{"x": batch, "k": np.arange(len(batch)) % 3} for batch in batches if len(batch)]
    rows = results(text, {"x": kind, "k": Kind.INT}, columns, **how)
    return [(row.key["k"], row.values["v"], row.values["s"]) for row in rows]


def check(kind: Kind, batches: Sequence[Sequence[Any]], arrow: Any, tolerance: float) -> None:
    """Compare the statistics of each key with the exact ones, on one node and on two."""
    typed = [pa.array(batch, arrow) for batch in batches]
    of_key = {k: [value for batch in batches for value in batch[k::3]] for k in range(3)}
    for how in ({}, {"nodes": 2, "tasks": 3}):
        rows = computed(kind, typed, **how)
        assert {key for key, _, _ in rows} == {key for key in of_key if of_key[key]}
        for key, variance, deviation in rows:
            truth = exact(of_key[key])
            if truth is None:
                assert variance is deviation is None
                continue
            assert variance == pytest.approx(float(truth), rel=tolerance, abs=0)
            assert deviation == pytest.approx(math.sqrt(float(truth)), rel=1e-12, abs=0)


@settings(max_examples=150)
@given(st.lists(st.lists(st.none() | WHOLE, max_size=9), min_size=1, max_size=4))
@example([[MOST, 0, 0, MOST - 1, 0, 0, MOST - 2], [MOST - 3, 0, 0, MOST - 4]])
@example([[LEAST] * 9, [MOST] * 9])
def test_of_whole_numbers_they_are_exact(batches: list[list[int | None]]) -> None:
    check(Kind.INT, batches, pa.int64(), 0)


@settings(max_examples=150)
@given(st.lists(st.lists(st.none() | UNITS, max_size=9), min_size=1, max_size=4))
@example([[LARGEST, -LARGEST] * 6, [LARGEST - 1] * 9])
@example([[LARGEST - place for place in range(9)]])
def test_of_decimals_they_are_exact(batches: list[list[int | None]]) -> None:
    of_decimals = [
        [None if number is None else Decimal(f"{number}E-9") for number in batch]
        for batch in batches
    ]
    check(Kind.DECIMAL, of_decimals, DECIMAL, 0)


@settings(max_examples=150)
@given(
    st.floats(-1e15, 1e15),
    st.sampled_from([1e-9, 1e-3, 1.0, 1e9]),
    st.lists(st.lists(st.none() | st.floats(-1, 1), max_size=9), min_size=1, max_size=4),
)
@example(1e9, 1e-3, [[0.1, 0.2, 0.3, -0.1, 0.5, 0.6, 0.7, 0.8, 0.9]] * 4)
@example(0.1, 1e-9, [[0.0] * 9, [0.0] * 9])
def test_of_floats_they_are_within_a_part_in_a_trillion(
    offset: float, scale: float, batches: list[list[float | None]]
) -> None:
    moved = [[None if x is None else offset + scale * x for x in batch] for batch in batches]
    check(Kind.FLOAT, moved, pa.float64(), 1e-12)


@pytest.mark.parametrize("batches", [1, 500])
@pytest.mark.parametrize(
    ("mean", "deviation"),
    [(1e9, 1e-3), *by_night("solvers", [(-1e15, 1.0), (0.1, 0.0), (3.0, 1e9)])],
)
def test_errors_do_not_grow_with_the_number_of_values(
    mean: float, deviation: float, batches: int
) -> None:
    values = mean + deviation * np.random.default_rng(5).standard_normal(20_000)
    (row,) = results(QueryText(BOTH), {"x": Kind.FLOAT},
                     [{"x": part} for part in np.array_split(values, batches)])  # fmt: skip
    truth = exact(values.tolist())
    assert truth is not None
    assert row.values["v"] == pytest.approx(float(truth), rel=1e-12, abs=0)


@pytest.mark.parametrize("argument", ["x", "cast(x as decimal)", "x - 9223372036854775800"])
def test_large_numbers_that_are_near_each_other(argument: str) -> None:
    text = QueryText({"v": f"variance({argument})"})
    (row,) = results(text, {"x": Kind.INT}, [{"x": [MOST - place for place in range(5)]}])
    assert row.values["v"] == 2.5
