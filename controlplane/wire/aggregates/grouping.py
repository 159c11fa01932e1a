"""Merging of equal rows of state and of results.

Moments are count, mean and spread of floats in groups: stable where the mean is large. The spread
is the sum of squared distances from the mean; both are a float and the rest that the float cannot
hold. Parts merge by the formula of Chan, Golub and LeVeque (Updating formulae and a pairwise
algorithm for computing sample variances, 1979), here any number at once. Sums of groups are of
twice the precision of floats, so errors do not grow with the number of values or of merges.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from controlplane.wire.aggregates.layout import Moments
from controlplane.wire.aggregates.sketches import coarse_cells, is_coarse, is_exact
from controlplane.wire.aggregates.state_schema import CELL, StateSchema

Floats = NDArray[np.float64]
Int64s = NDArray[np.int64]
# Weight, mean, rest, spread and error of each group.
MomentValues = tuple[Any, Any, Any, Any, Any]
# Arrow's stubs know few of the overloads that are used here.
_pa: Any = pa
_ROWS: Final = "rows"
# Different values that a sketch keeps exactly; with more it keeps coarser cells.
EXACT_VALUES: Final = 1_000

# A column (none to count rows), how it is aggregated, and under which name.
More = Sequence[tuple[str, str, str]]


def moments_of(values: Floats, valid: NDArray[np.bool_], starts: Int64s) -> MomentValues:
    """Return the moments of each group of values.

    `values`: float64[n], those of a group side by side, `starts`: where each group begins;
    `valid`: which of them are there. Without a value all moments are 0.
    """
    lengths = _lengths(starts, len(values))
    with np.errstate(invalid="ignore", over="ignore"):
        weight = np.add.reduceat(valid.astype(np.int64), starts)
        count = np.maximum(weight, 1)
        mean = _total(np.where(valid, values, 0.0), starts, lengths) / count
        distance = np.where(valid, values - np.repeat(mean, lengths), 0.0)
        # The mean is rounded; the rest is small.
        rest = _total(distance, starts, lengths) / count
        distance -= np.where(valid, np.repeat(rest, lengths), 0.0)
        return weight, mean, rest, *_sums(distance * distance, starts, lengths)


def merge_moments(
    weight: Int64s, mean: Floats, rest: Floats, spread: Floats, error: Floats, starts: Int64s
) -> MomentValues:
    """Return the moments of each group of adjacent parts."""
    lengths = _lengths(starts, len(mean))
    with np.errstate(invalid="ignore", over="ignore"):
        total = np.add.reduceat(weight, starts)
        # Distances from the part with most values have the smallest rounding errors.
        pivot = _heaviest(weight, starts, lengths)
        distance = mean - np.repeat(mean[pivot], lengths) + (rest - np.repeat(rest[pivot], lengths))
        distance = np.where(weight > 0, distance, 0.0)
        shift = _total(weight * distance, starts, lengths) / np.maximum(total, 1)
        distance -= np.where(weight > 0, np.repeat(shift, lengths), 0.0)
        within, more = _sums(spread, starts, lengths)
        between, left = _sums(weight * distance * distance, starts, lengths)
        more += left + np.add.reduceat(error, starts)
        moved = _with_rest(mean[pivot], rest[pivot] + shift)
        merged, left = _with_rest(within, between)
        return total, *moved, *_with_rest(merged, left + more)


def _total(values: Floats, starts: Int64s, lengths: Int64s) -> Floats:
    high, low = _sums(values, starts, lengths)
    return high + low


def _sums(values: Floats, starts: Int64s, lengths: Int64s) -> tuple[Floats, Floats]:
    """Return the sum of each group as a float, and the rest that the float cannot hold.

    The leading bits of all values of a group are added without rounding, then the others (Rump,
    Ogita and Oishi, Accurate floating-point summation, 2008, algorithm 3.2).
    """
    largest = np.maximum.reduceat(np.abs(values), starts)
    exponent = np.frexp(largest)[1] + np.frexp(lengths + 2.0)[1]
    grid = np.repeat(np.ldexp(1.0, exponent), lengths)
    leading = np.where(np.isfinite(grid), (values + grid) - grid, values)
    others = np.where(np.isfinite(values), values - leading, 0.0)
    return _with_rest(np.add.reduceat(leading, starts), np.add.reduceat(others, starts))


def _with_rest(high: Floats, low: Floats) -> tuple[Floats, Floats]:
    """Return the rounded sum of two numbers, and what rounding took; 0 for infinities and NaN."""
    result = high + low
    part = result - high
    rest = (high - (result - part)) + (low - part)
    return result, np.where(np.isfinite(rest), rest, 0.0)


def _heaviest(weight: Int64s, starts: Int64s, lengths: Int64s) -> Int64s:
    """Return the place of a part with the largest weight of each group."""
    most = np.repeat(np.maximum.reduceat(weight, starts), lengths)
    places = np.where(weight == most, np.arange(len(weight)), len(weight))
    return np.asarray(np.minimum.reduceat(places, starts))


def _lengths(starts: Int64s, size: int) -> Int64s:
    return np.diff(np.append(starts, size))


def merge_rows(form: StateSchema, table: Any, names: Sequence[str], more: More = ()) -> Any:
    """Return one row per different values of the columns `names`, with all others merged.

    `names`: the columns that identify a row, or some of them. `more`: further aggregates.
    The columns are those of `names`, those that the state schema merges, and `more`.
    """
    aggregates: list[Any] = list(form.merges)
    aggregates += [([] if agg == "count_all" else column, agg) for column, agg, _ in more]
    columns = [*names, *(name for name, _ in form.merges), *(name for _, _, name in more)]
    if form.moments:
        table = table.append_column(_ROWS, _pa.array(np.arange(len(table))))
        aggregates.append((_ROWS, "list"))
        columns.append(_ROWS)
    result = table.group_by(list(names), use_threads=False).aggregate(aggregates)
    result = result.rename_columns(columns)
    if form.moments:
        result = _with_moments(form, table, result)
    return coarsen_full_sketches(result, names) if CELL[1] in names else result


def _with_moments(form: StateSchema, table: Any, result: Any) -> Any:
    """Replace the lists of rows by the merged moments of these rows."""
    rows = result[_ROWS].combine_chunks()
    result = result.drop_columns([_ROWS])
    for columns in form.moments:
        result = _with_moment(columns, table, result, rows)
    return result


def _with_moment(columns: Moments, table: Any, result: Any, rows: Any) -> Any:
    order, starts = flatten_lists(rows)
    parts = [table[name].fill_null(0).to_numpy()[order] for name in columns]
    weight, mean, rest, spread, error = parts
    values: Sequence[Any] = parts
    if len(starts):
        values = merge_moments(weight, mean, rest, spread, error, starts)
    result = result.drop_columns([columns[0]])
    for name, column in zip(columns, values, strict=True):
        result = result.append_column(name, _pa.array(column))
    return result


def flatten_lists(lists: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the values of all lists in sequence, and the start of each list.

    No list may be empty.
    """
    offsets = np.asarray(lists.offsets)
    values = np.asarray(lists.values)[offsets[0] :] if len(lists) else np.zeros(0, np.int64)
    return values, (offsets[:-1] - offsets[0]).astype(np.int64) if len(lists) else values


def coarsen_full_sketches(cells: Any, names: Sequence[str]) -> Any:
    """Make the cells of each sketch coarse that has too many exact ones, or coarse ones already.

    The result does not depend on how records were combined before: with `EXACT_VALUES` different
    cells all become coarse, with fewer none does.
    """
    kind = np.asarray(cells["largest"].fill_null(-2))
    cell = np.asarray(cells["c"].fill_null(0))
    exact, coarse = is_exact(kind, cell), is_coarse(kind, cell)
    if not coarse.any() and np.count_nonzero(exact) < EXACT_VALUES:
        return cells
    rows = np.flatnonzero(exact | coarse)
    place = [name for name in names if name not in CELL[1:]]
    group = group_numbers(cells.select(place).take(_pa.array(rows)), place)
    count = np.bincount(group)
    some_coarse = np.bincount(group, coarse[rows]) > 0
    some_exact = np.bincount(group, exact[rows] & (cell[rows] != 0)) > 0
    full = ((count >= EXACT_VALUES) | some_coarse) & some_exact
    if not full.any():
        return cells
    changed = rows[full[group] & exact[rows]]
    return _merged_again(cells, names, changed, (kind, cell))


def _merged_again(
    cells: Any, names: Sequence[str], changed: NDArray[np.int64], known: tuple[Any, Any]
) -> Any:
    kind, cell = (values.copy() for values in known)
    cell[changed], kind[changed] = coarse_cells(kind[changed], cell[changed])
    columns = {"c": cell, "largest": kind}
    for name, values in columns.items():
        null = np.asarray(cells[name].is_null())
        column_index = cells.schema.get_field_index(name)
        cells = cells.set_column(column_index, name, _pa.array(values, mask=null))
    # Counts add up; of ranks and versions of rows, the largest remains.
    others = [name for name in cells.column_names if name not in names]
    result = cells.group_by(list(names), use_threads=False).aggregate(
        [(name, "sum" if name == "added" else "max") for name in others]
    )
    return result.rename_columns([*names, *others])


def group_numbers(table: Any, names: Sequence[str]) -> NDArray[np.int64]:
    """Return for each row the number of its group of equal rows."""
    marked = table.append_column(_ROWS, _pa.array(np.arange(len(table))))
    lists = marked.group_by(list(names), use_threads=False).aggregate([(_ROWS, "list")])
    order, starts = flatten_lists(lists[f"{_ROWS}_list"].combine_chunks())
    group = np.empty(len(table), np.int64)
    group[order] = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(order))))
    return group
