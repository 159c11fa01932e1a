"""Finalize: the step from slots and sketches to the values of aggregates.

It merges the parts of a window (streams, tasks of a split key, incarnations of a query) in any
order, so each record counts exactly once.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from functools import partial
from itertools import repeat
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from controlplane.wire.aggregates.grouping import merge_rows
from controlplane.wire.aggregates.layout import Layout, exact_spread, layout_of
from controlplane.wire.aggregates.sampling import SAMPLE, Sampled, sampled_of
from controlplane.wire.aggregates.sketches import (
    SketchCell,
    date_of,
    decode_float,
    finalize_sketch,
    plain_float,
)
from controlplane.wire.aggregates.state_schema import OWNER, StateSchema, schema_named, schema_names
from controlplane.wire.aggregates.user_results import Outcome, user_results
from controlplane.wire.language.aggregates import Aggregate
from controlplane.wire.language.registered import registered_aggregate
from controlplane.wire.language.tree import Kind
from controlplane.wire.query import Computation

# What distinguishes the parts of a window.
_PARTS: Final = (*OWNER, "stream")
_BATCH: Final = "batch"
_NO_ERRORS: Final[Mapping[str, str]] = {}
_UNIT: Final = Decimal("1e-9")


class WindowRow(NamedTuple):
    """One window of one key: its start (event time, ms), the key and the aggregates by name.

    `batch`: the newest micro-batch that changed it. `parts`: how many were merged. `errors`: by
    name why an aggregate has no value: its last step raised or took too long. `sampled`: the sample
    that drop rules took, None for all records.
    """

    start_ms: int
    key: Mapping[str, Any]
    values: Mapping[str, Any]
    batch: int
    parts: int
    errors: Mapping[str, str] = _NO_ERRORS
    sampled: Sampled | None = None


def finalize(
    computation: Computation, tables: Mapping[str, Any], page_s: float | None = None
) -> list[WindowRow]:
    """Return the windows of a query from the newest rows of its parts, by schema name.

    Each table has the columns of its state schema and `batch`. `page_s`: see `user_results`.
    """
    layout = layout_of(computation)
    slots, cells, blobs = schema_names(layout)
    if slots not in tables:
        return []
    rows = _readable(_merged(schema_named(slots), tables[slots]))
    columns = {name: rows[name].to_pylist() for name in rows.column_names}
    slot_names, key_names = layout.schema.slot_names, layout.schema.key_names
    # NaN is always the same object, for lookups.
    plain_keys = [map(plain_float, columns[key]) for key in key_names]
    places = list(zip(columns["pane"], *plain_keys, strict=True))
    extra = _SketchValues(layout, tables.get(cells), tables.get(blobs), page_s)
    outcomes = [
        [extra.outcome(place, index, aggregate) for place in places]
        if aggregate.kept.sketch
        else _outcomes_of(aggregate, [columns[slot_names[slot]] for slot in layout.places[index]])
        for index, (_, aggregate) in enumerate(computation.aggregates)
    ]
    keys = [_plain_column(item.kind, column) for (_, item), column in zip(
        computation.key, list(zip(*places, strict=True))[1:], strict=True)]  # fmt: skip
    samples: list[Sampled | None] = [None] * len(places)
    if cells in tables:
        samples = [*map(extra.sampled, places, columns["s0"])]
    return _rows(computation, columns, keys, outcomes, samples)


def slot_values(
    computation: Computation, columns: Mapping[str, Sequence[Any]]
) -> tuple[list[list[Any]], list[list[Any]]]:
    """Return the keys and the values of windows that have one part and no sketches, by column.

    `columns`: those of the state schema, as `plain_lists` returns them. An `Outcome` has the error
    of an aggregate that has no value.
    """
    layout = layout_of(computation)
    slot_names, key_names = layout.schema.slot_names, layout.schema.key_names
    keys = [_plain_column(item.kind, columns[name])
            for (_, item), name in zip(computation.key, key_names, strict=True)]  # fmt: skip
    values = [
        _outcomes_of(aggregate, [columns[slot_names[slot]] for slot in layout.places[index]])
        for index, (_, aggregate) in enumerate(computation.aggregates)
    ]
    return keys, values


def plain_lists(table: Any) -> dict[str, list[Any]]:
    """Return the columns of a table as Python has them; times are ms, dates are days."""
    rows = _readable(table)
    return {name: rows[name].to_pylist() for name in rows.column_names}


def _rows(
    computation: Computation,
    columns: Mapping[str, Sequence[Any]],
    keys: Sequence[Sequence[Any]],
    outcomes: Sequence[Sequence[Any]],
    samples: Sequence[Sampled | None],
) -> list[WindowRow]:
    """Return the windows from columns; an `Outcome` replaces a value that is missing."""
    key_names = [name for name, _ in computation.key]
    names = [name for name, _ in computation.aggregates]
    result = []
    every_key = zip(*keys, strict=True) if keys else repeat(())
    every_value = zip(*outcomes, strict=True) if outcomes else repeat(())
    about = zip(columns["pane"], columns[_BATCH], columns["parts"], samples, strict=True)
    every = zip(about, every_key, every_value, strict=False)
    for (start_ms, batch, parts, sampled), key, selected in every:
        values = dict(zip(names, selected, strict=True))
        errors: dict[str, str] = {}
        for name, value in values.items():
            if isinstance(value, Outcome):
                values[name] = value.value
                if value.error:
                    errors[name] = value.error
        row_key = dict(zip(key_names, key, strict=True))
        row = WindowRow(start_ms, row_key, values, batch, parts, errors, sampled)
        result.append(row)
    return result


def _outcomes_of(aggregate: Aggregate, slots: Sequence[Sequence[Any]]) -> list[Any]:
    """Return the values of an aggregate from its slots, one after the other in each column."""
    kind = Kind.INT if aggregate.argument is None else aggregate.argument.kind
    if aggregate.function == "count":
        return list(slots[0])
    if aggregate.function in ("min", "max") and kind is Kind.INT:
        return list(slots[0])
    if aggregate.function == "sum":
        return [_total(value, kind) for value in slots[1]]
    if aggregate.function == "mean" and kind in (Kind.INT, Kind.FLOAT):
        return [None if not count or total is None else _total(total, kind) / count
                for count, total in zip(*slots, strict=True)]  # fmt: skip
    rows = zip(*slots, strict=True)
    return [_computed(aggregate, partial(value_of, aggregate, numbers)) for numbers in rows]


def _computed(aggregate: Aggregate, compute: Callable[[], Any]) -> Any:
    """Return what `compute` returns, or an `Outcome` with its error."""
    try:
        return compute()
    except Exception as error:  # noqa: BLE001 - the others can be read
        return _failed(aggregate, f"raised {type(error).__name__}: {error}")


def _plain_column(kind: Kind, column: Sequence[Any]) -> list[Any]:
    if kind in (Kind.INT, Kind.TEXT):
        return list(column)
    return [_plain(value, kind) for value in column]


def _failed(aggregate: Aggregate, why: str) -> Outcome:
    name = aggregate.kept.sketch or aggregate.function
    return Outcome(None, f"{name} {why}"[:250])


def value_of(aggregate: Aggregate, slots: Sequence[Any]) -> Any:
    """Return an aggregate from its merged slots (times in ms), None if no record had a value."""
    kind = Kind.INT if aggregate.argument is None else aggregate.argument.kind
    match aggregate.function:
        case "count":
            return slots[0]
        case "min" | "max" as function:
            return _extreme(slots[0], kind, function)
        case "sum":
            return _total(slots[1], kind)
        case "mean":
            return _mean(slots[0], _total(slots[1], kind))
        case "variance" | "stddev" as function:
            variance = _variance(kind, *slots)
            return variance if variance is None or function == "variance" else math.sqrt(variance)
    raise LookupError(f"there is no aggregate {aggregate.function}")


def _extreme(value: Any, kind: Kind, function: str) -> Any:
    if kind is Kind.FLOAT and function == "max" and value is not None:
        return decode_float(value)
    return _plain(value, kind)


def _total(value: Any, kind: Kind) -> Any:
    return int(value) if kind is Kind.INT and value is not None else value


def _mean(count: int, total: float | Decimal | None) -> float | Decimal | None:
    if not count or total is None:
        return None
    if not isinstance(total, Decimal):
        return total / count
    with localcontext(prec=120):
        return (total / count).quantize(_UNIT, ROUND_HALF_EVEN)


def _variance(kind: Kind, count: int, *moments: Any) -> float | None:
    if count < 2:  # noqa: PLR2004 - of a sample
        return None
    if kind is Kind.FLOAT:
        _, _, spread, error = moments
        return float((spread + error) / (count - 1))
    return float(exact_spread(kind, count, *moments) / (count - 1))


def _plain(value: Any, kind: Kind) -> Any:
    """Return a value of a row as Python has it; times stay milliseconds."""
    if value is None:
        return None
    return date_of(value) if kind is Kind.DATE else plain_float(value)


def _place(row: Mapping[str, Any], keys: Sequence[str]) -> tuple[Any, ...]:
    """Return the window and key of a row; NaN is always the same object, for lookups."""
    return (row["pane"], *(plain_float(row[key]) for key in keys))


def _readable(table: Any) -> Any:
    """Return times as milliseconds and dates as days: Python has the years 1 to 9999 only."""
    for index, column in enumerate(table.schema):
        if pa.types.is_timestamp(column.type):
            table = table.set_column(index, column.name, table[column.name].cast(pa.int64()))
        elif pa.types.is_date(column.type):
            table = table.set_column(index, column.name, table[column.name].cast(pa.int32()))
    return table


def _merged(form: StateSchema, table: Any) -> Any:
    """Merge the parts of each window; `parts` counts them."""
    names = [name for name in form.identity if name not in _PARTS]
    return merge_rows(form, table, names, [(_BATCH, "max", _BATCH), ("", "count_all", "parts")])


class _SketchValues:
    """Sketches and users' aggregates by place: window and key."""

    def __init__(self, layout: Layout, cells: Any, blobs: Any, page_s: float | None) -> None:
        users = [
            sketch
            for sketch in layout.sketches
            if registered_aggregate(sketch.aggregate.kept.sketch)
        ]
        self._users = {user.index for user in users}
        self._cells: dict[Any, list[SketchCell]] = {}
        states: dict[Any, list[bytes]] = {}
        keys, cells_name, blobs_name = layout.schema.key_names, *schema_names(layout)[1:]
        if cells is not None:
            for row in _readable(_merged(schema_named(cells_name), cells)).to_pylist():
                number = row["largest"] if row["added"] is None else row["added"]
                cell = SketchCell(row["c"] if row["t"] is None else row["t"], number)
                self._cells.setdefault((*_place(row, keys), row["a"]), []).append(cell)
        if blobs is not None:
            for row in _readable(_merged(schema_named(blobs_name), blobs)).to_pylist():
                states[*_place(row, keys), row["a"]] = row["state"]
        self._results = {
            item.index: _results(item.index, item.aggregate, states, page_s) for item in users
        }

    def sampled(self, place: tuple[Any, ...], records: int) -> Sampled | None:
        """Return the sample of so many records that drop rules took at a place, None for all."""
        return sampled_of(records, self._cells.get((*place, SAMPLE), ()))

    def outcome(self, place: tuple[Any, ...], index: int, aggregate: Aggregate) -> Any:
        """Return the value of an aggregate, by its index, at a place, or an `Outcome`."""
        if index in self._users:
            return self._results[index].get(place, Outcome())
        assert aggregate.argument is not None
        cells, kind = self._cells.get((*place, index), []), aggregate.argument.kind
        setting = aggregate.setting or 0.0
        work = partial(finalize_sketch, aggregate.kept.sketch, cells, setting, kind)
        return _computed(aggregate, work)


def _results(
    index: int, aggregate: Aggregate, states: Mapping[Any, list[bytes]], page_s: float | None
) -> dict[Any, Outcome]:
    """Return the outcomes of a user's aggregate by place, the first windows first."""
    selected = sorted(
        (state for state in states if state[-1] == index and states[state]),
        key=lambda item: item[0],
    )
    outcomes = user_results(aggregate.kept.sketch, [states[value] for value in selected], page_s)
    return {
        element[:-1]: _failed(aggregate, result.error) if result.error else result
        for element, result in zip(selected, outcomes, strict=True)
    }


def newest_rows(form: StateSchema, entries: Sequence[tuple[int, Any]]) -> Any:
    """Return the newest row of each part of each window, with the `batch` it is of.

    `entries`: batch and table, oldest first. A window is written whole whenever it changes, but of
    a sketch only the cells that did.
    """
    marked = [
        rows.append_column(_BATCH, pa.repeat(pa.scalar(batch, pa.int64()), len(rows)))
        for batch, rows in entries
    ]
    table = pa.concat_tables(marked)
    names = list(form.identity)
    numbered = table.select(names).append_column("row", pa.array(np.arange(len(table))))
    last = numbered.group_by(names, use_threads=False).aggregate([("row", "max")])
    columns = [name for name in table.column_names if name not in names]
    return table.take(last["row_max"]).select([*names, *columns])
