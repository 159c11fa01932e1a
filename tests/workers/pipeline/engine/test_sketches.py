"""Sketches: within their promised error, and the same however records come."""

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.wire.sketches import FINISHERS, distinct, quantile, top, value_of_bucket
from workers.pipeline.engine.sketches import buckets_of, cells_of, keeps_largest


def sketched(sketch: str, values: Any) -> dict[Any, int]:
    """Return the merged cells of some values."""
    cell, item, number = cells_of(sketch, values)
    names = item.to_pylist() if cell is None else cell.tolist()
    found: dict[Any, int] = {}
    for name, value in zip(names, number.tolist(), strict=True):
        known = found.get(name, 0)
        found[name] = max(known, value) if keeps_largest(sketch) else known + value
    return found


@given(st.floats(-1e12, 1e12))
def test_a_bucket_stands_for_its_values_within_one_percent(value: float) -> None:
    middle = value_of_bucket(int(buckets_of(np.array([value]))[0]))
    assert middle == pytest.approx(value, rel=0.01, abs=1e-9)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60), st.floats(0, 1))
def test_quantiles_are_within_one_percent_of_a_value_of_that_rank(
    values: list[float], share: float
) -> None:
    found = quantile(sketched("quantile", pa.array(values)), share)
    assert found is not None
    exact = sorted(values)[int(share * (len(values) - 1))]
    assert found == pytest.approx(exact, rel=0.0101, abs=1e-8)


@pytest.mark.parametrize("count", [0, 1, 10, 1_000, 20_000, 300_000])
@pytest.mark.parametrize("kind", ["numbers", "texts"])
def test_distinct_values_are_counted_within_three_deviations(count: int, kind: str) -> None:
    values: Any = pa.array(np.arange(count) * 7)
    if kind == "texts":
        values = values.cast(pa.string())
    assert distinct(sketched("count_distinct", values)) == pytest.approx(count, rel=3 * 0.0163)


def test_seeing_a_value_again_changes_nothing() -> None:
    once = sketched("count_distinct", pa.array(np.arange(5_000)))
    assert sketched("count_distinct", pa.array(np.tile(np.arange(5_000), 3))) == once


def test_the_most_frequent_are_counted_exactly() -> None:
    words = ["b", "a", "c", "a", "b", "d"]
    assert top(sketched("top_k", pa.array(words)), 3) == [("a", 2), ("b", 2), ("c", 1)]
    assert sketched("top_k", pa.array([3, 3, -1])) == Counter({3: 2, -1: 1})


def test_every_sketch_can_be_finished() -> None:
    for sketch in FINISHERS:
        cells_of(sketch, pa.array([1, 2]))
    assert quantile({}, 0.5) is None
    with pytest.raises(LookupError):
        cells_of("none", pa.array([1]))
