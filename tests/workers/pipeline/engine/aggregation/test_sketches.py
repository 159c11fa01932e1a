"""Sketches: exact while they are small, then within their promised error, however records come."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.wire.aggregates.grouping import EXACT_VALUES, merge_rows
from controlplane.wire.aggregates.sketches import (
    SketchCell,
    buckets_of,
    distinct,
    finalize_sketch,
    quantile,
    top,
    value_of_bucket,
)
from controlplane.wire.aggregates.state_schema import CELL, cells_schema
from controlplane.wire.language.tree import Kind
from workers.pipeline.engine.aggregation.panes import cells_of, coarsen_full_cells
from workers.pipeline.engine.kernels import KERNELS

KINDS = {pa.int64(): Kind.INT, pa.string(): Kind.TEXT, pa.float64(): Kind.FLOAT}
FORM = cells_schema(())


def rows_of(sketch: str, values: Any, *, probe: bool = False) -> Any:
    """Return the cells of values as rows; `probe`: coarse at once, where that is certain."""
    cells = cells_of(sketch, values, KINDS[values.type])
    size = len(values)
    if probe:
        cells = coarsen_full_cells(cells, pa.table({"place": pa.nulls(size)}))
    zeros: dict[str, Any] = {name: pa.repeat(0, size) for name in FORM.arrow.names}
    columns: dict[str, Any] = {
        "c": cells.cell,
        "t": cells.item,
        "added": cells.added,
        "largest": cells.largest,
    }
    nothing = {name: pa.nulls(size) for name in columns}
    known = {name: pa.array(column) for name, column in columns.items() if column is not None}
    return pa.table({**zeros, **nothing, **known}).cast(FORM.arrow)


def merged_cells(*tables: Any) -> list[SketchCell]:
    """Return the cells of these tables, merged."""
    rows = merge_rows(FORM, pa.concat_tables(tables), FORM.identity).to_pylist()
    return [
        SketchCell(row["c"] if row["t"] is None else row["t"],
             row["largest"] if row["added"] is None else row["added"])
        for row in rows
    ]  # fmt: skip


def sketched(sketch: str, values: Any) -> list[SketchCell]:
    return merged_cells(rows_of(sketch, values))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_bucket_stands_for_its_values_within_one_percent(value: float) -> None:
    middle = value_of_bucket(int(buckets_of(np.array([value]))[0]))
    assert middle == pytest.approx(value, rel=0.01, abs=1e-300)


def test_buckets_are_in_the_order_of_their_values() -> None:
    values = np.array(
        [-math.inf, -1e308, -5.0, -1e-200, 0.0, 1e-200, 5.0, 1e308, math.inf, math.nan]
    )
    buckets = buckets_of(values)
    assert (np.diff(buckets) > 0).all()
    ends = [value_of_bucket(int(bucket)) for bucket in buckets]
    assert ends[0] == -math.inf
    assert ends[-2] == math.inf
    assert math.isnan(ends[-1])


@given(st.lists(st.floats(allow_subnormal=False), min_size=1, max_size=60), st.floats(0, 1))
def test_quantiles_of_few_values_are_exact(values: list[float], share: float) -> None:
    found = quantile(sketched("quantile", pa.array(values)), share)
    assert found is not None
    ordered = sorted(values, key=lambda value: (math.isnan(value), value))
    exact = ordered[math.floor(share * (len(values) - 1))]
    assert found == pytest.approx(exact, rel=0, abs=1e-300, nan_ok=True)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99, 1.0])
@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_quantiles_of_many_values_are_within_one_percent(share: float, scale: float) -> None:
    values = np.random.default_rng(3).normal(size=20_000) * scale
    cells = sketched("quantile", pa.array(values))
    assert len(cells) < EXACT_VALUES * 2
    exact = np.sort(values)[math.floor(share * (len(values) - 1))]
    assert quantile(cells, share) == pytest.approx(exact, rel=0.0101)


@pytest.mark.parametrize("kind", ["numbers", "texts"])
@pytest.mark.parametrize("count", [0, 1, 47, 49, EXACT_VALUES - 1])
def test_few_distinct_values_are_counted_exactly(count: int, kind: str) -> None:
    assert distinct(sketched("count_distinct", values_of(count, kind))) == count


@pytest.mark.parametrize("kind", ["numbers", "texts"])
@pytest.mark.parametrize("count", [EXACT_VALUES, 5_000, 10_000, 20_000, 300_000])
def test_many_distinct_values_are_counted_within_three_deviations(count: int, kind: str) -> None:
    cells = sketched("count_distinct", values_of(count, kind))
    assert len(cells) <= 4096
    assert distinct(cells) == pytest.approx(count, rel=3 * 0.0163)


def values_of(count: int, kind: str) -> Any:
    values: Any = pa.array(np.arange(count) * 7)
    return values.cast(pa.string()) if kind == "texts" else values


def test_the_stated_error_of_distinct_values_is_that_of_many_draws() -> None:
    """Over independent sets the deviation is about 1.6 %, and there is no bias."""
    rng = np.random.default_rng(5)
    for count in (2_000, 12_000, 40_000):
        errors = [
            distinct(sketched("count_distinct", pa.array(rng.integers(0, 2**62, count)))) / count
            - 1
            for _ in range(40)
        ]
        assert abs(np.mean(errors)) < 0.01
        assert np.std(errors) < 0.0163 * 1.4


@pytest.mark.parametrize("sketch", ["count_distinct", "quantile"])
@pytest.mark.parametrize("count", [10, EXACT_VALUES - 1, EXACT_VALUES, 3 * EXACT_VALUES, 20_000])
def test_a_sketch_does_not_depend_on_how_its_values_were_put_together(
    sketch: str, count: int
) -> None:
    """Exact parts, coarse ones, and ones that were coarse at once, in any order."""
    values = np.random.default_rng(count).permutation(np.tile(np.arange(count) * 0.5, 2))
    whole = sorted(merged_cells(rows_of(sketch, pa.array(values))))
    for cuts in (2, 7, 50):
        state = FORM.arrow.empty_table()
        for part in np.array_split(values, cuts):
            rows = rows_of(sketch, pa.array(part), probe=True)
            state = merge_rows(FORM, pa.concat_tables([rows, state]), FORM.identity)
            state = state.select(FORM.arrow.names)
        assert sorted(merged_cells(state)) == whole


def test_seeing_a_value_again_changes_nothing() -> None:
    once = sketched("count_distinct", pa.array(np.arange(5_000)))
    again = sketched("count_distinct", pa.array(np.tile(np.arange(5_000), 3)))
    assert sorted(again) == sorted(once)


def test_the_most_frequent_are_counted_exactly() -> None:
    words = ["b", "a", "c", "a", "b", "d"]
    found = top(sketched("top_k", pa.array(words)), 3, Kind.TEXT)
    assert found == [("a", 2), ("b", 2), ("c", 1)]
    assert top(sketched("top_k", pa.array([3, 3, -1])), 5, Kind.INT) == [(3, 2), (-1, 1)]
    floats = [0.0, -0.0, math.nan, -math.nan, math.inf, 1.5]
    found = top(sketched("top_k", pa.array(floats)), 3, Kind.FLOAT)
    assert found[:1] == [(0.0, 2)]
    assert math.isnan(found[1][0])
    assert found[1:] == [(found[1][0], 2), (1.5, 1)]


@pytest.mark.parametrize("text", ["1.5", "-0.000000003", "99999999999999999999999999999"])
def test_the_most_frequent_may_be_decimals(text: str) -> None:
    value = KERNELS["to decimal"](pa.array([text]))
    (cell,) = cells_of("top_k", value, Kind.DECIMAL).item.to_pylist()
    ((found, count),) = top([SketchCell(cell, 4)], 1, Kind.DECIMAL)
    assert (found, count) == (value[0].as_py(), 4)


def test_every_sketch_can_be_finished() -> None:
    for sketch in ("quantile", "count_distinct", "top_k"):
        cells = sketched(sketch, pa.array([1, 2]))
        assert finalize_sketch(sketch, cells, 1.0, Kind.INT) is not None
    assert quantile([], 0.5) is None
    finishers: list[Callable[[], Any]] = [
        lambda: cells_of("none", pa.array([1]), Kind.INT),
        lambda: finalize_sketch("none", [], 1.0, Kind.INT),
    ]
    for finish in finishers:
        with pytest.raises(LookupError):
            finish()
    assert CELL == ("a", "c", "t")
