"""Records to panes: the pane-level part of every computation (paper 001, section 4.2).

A pane holds the aggregates of one stream's records of one key in one range of event time. Panes are
computed once for all queries with the same computation, so that the work per record does not grow
with the queries that share it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any, Final, NamedTuple

import numpy as np

from controlplane.wire.aggregates.grouping import (
    EXACT_VALUES,
    coarsen_full_sketches,
    flatten_lists,
    moments_of,
)
from controlplane.wire.aggregates.layout import (
    HIGH,
    Layout,
    Moments,
    SketchAggregate,
    layout_of,
    stored_type,
)
from controlplane.wire.aggregates.sampling import sample_cells
from controlplane.wire.aggregates.sketches import (
    HASH,
    QUANTILE,
    coarse_cells,
    float_codes,
    hash_cells,
    value_cells,
)
from controlplane.wire.aggregates.state_schema import CELL
from controlplane.wire.language.aggregates import Merge, Slot
from controlplane.wire.language.tree import Expression, Kind
from controlplane.wire.query import Computation
from workers.pipeline.engine.aggregation.selection import kept_probabilities, select_records
from workers.pipeline.engine.arrow import pa, pc
from workers.pipeline.engine.assignment.subscriptions import DIRECT, Intake
from workers.pipeline.engine.evaluation.evaluator import Evaluator, Rows
from workers.pipeline.engine.evaluation.records import Records
from workers.pipeline.engine.evaluation.user_aggregates import is_user_aggregate, partial_states
from workers.pipeline.engine.failures.fault import QueryFault
from workers.pipeline.engine.hashing import hash_rows
from workers.pipeline.engine.kernels.types import as_float, canonical

# So many records show whether a sketch has too many different values to be exact.
_PROBE: Final = 4 * EXACT_VALUES
# What all values of a batch may sum up to without an overflow of their own type.
_MOST: Final = {Kind.INT: 2**63, Kind.DECIMAL: 10**29}
# How records become a slot; moments of floats are computed of the rows of a group.
_PARTIALS: Final = {Merge.MIN: "min", Merge.MAX: "max"}
_SQUARES: Final = {kind: stored_type(Merge.SQUARES, kind) for kind in (Kind.INT, Kind.DECIMAL)}
_EXACT: Final = Context(prec=120)
_PLACE: Final = ("stream", "pane")


class Cells(NamedTuple):
    """The cells of values: their number or text, and what they add or have as `largest`."""

    cell: Any
    item: Any
    added: Any
    largest: Any


def cells_of(sketch: str, values: Any, kind: Kind) -> Cells:
    """Return the exact cell of each value of an array without nulls.

    Raises `LookupError` for an unknown sketch.
    """
    ones = np.ones(len(values), np.int64)
    match sketch:
        case "quantile":
            cell = value_cells(as_float(values).to_numpy())
            return Cells(cell, None, ones, np.full(len(values), QUANTILE))
        case "count_distinct":
            hashes = hash_rows([values], len(values))
            return Cells(hash_cells(hashes), None, None, np.full(len(values), HASH))
        case "top_k":
            return Cells(*cell_names(values, kind), ones, None)
    raise LookupError(f"there is no sketch {sketch}")


def cell_names(values: Any, kind: Kind) -> tuple[Any, Any]:
    """Return what names each value's cell: a whole number, or a text."""
    match kind:
        case Kind.TEXT:
            return None, values
        case Kind.DECIMAL:
            return None, values.cast(pa.string())
        case Kind.FLOAT:
            return float_codes(values.to_numpy()), None
        case Kind.DATE:
            return values.cast(pa.int32()).cast(pa.int64()).to_numpy(), None
    return values.cast(pa.int64()).to_numpy(zero_copy_only=False), None


def coarsen_full_cells(cells: Cells, places: Any) -> Cells:
    """Return coarse cells if each place certainly has too many values for exact ones.

    That saves grouping the values themselves. `places`: a table with what names the place of each
    cell. Where it is not certain the cells are merged first (`grouping.py`).
    """
    if cells.largest is None or len(places) <= _PROBE or not _all_full(cells, places):
        return cells
    cell, largest = coarse_cells(cells.largest, cells.cell)
    return cells._replace(cell=cell, largest=largest)


def _all_full(cells: Cells, places: Any) -> bool:
    names = places.column_names
    probe = places.slice(0, _PROBE).append_column("c", pa.array(cells.cell[:_PROBE]))
    counts = probe.group_by(names, use_threads=False).aggregate([("c", "count_distinct")])
    if (np.asarray(counts["c_count_distinct"]) < EXACT_VALUES).any():
        return False
    return len(places.group_by(names, use_threads=False).aggregate([])) == len(counts)


class Inputs(NamedTuple):
    """The input of the aggregation of a batch.

    `table`: a row per selected record with `stream`, `pane`, `task` if any, the keys `k…` and what
    the slots `s…` take; `sketched`: by sketch the values that it takes.
    """

    table: Any
    sketched: Mapping[int, Any]


def inputs_of(
    records: Records, computation: Computation, layout: Layout, task: str, kept: Any
) -> Inputs:
    """Return the aggregation input of the records in `kept` (bool[n], None: all).

    Everything is evaluated for all records of the batch, which queries share. If that raises a
    fault, such as an overflow, it is evaluated again for the selected records alone: a record that
    a query leaves out cannot end it.

    `task`: under which name the records carry their task, if they do. Raises `QueryFault`.
    """
    try:
        result = _inputs(records, records.evaluator, computation, layout, task)
    except QueryFault:
        rows = np.arange(len(records)) if kept is None else np.flatnonzero(kept)
        return _inputs(records, records.evaluator.within(rows), computation, layout, task, rows)
    if kept is None:
        return result
    mask = pa.array(kept)
    values = {index: array.filter(mask) for index, array in result.sketched.items()}
    return Inputs(result.table.filter(mask), values)


def _inputs(
    records: Records,
    evaluator: Evaluator,
    computation: Computation,
    layout: Layout,
    task: str,
    rows: Rows | None = None,
) -> Inputs:
    """Return the aggregation input of these rows; `evaluator` is over the same rows."""
    only = slice(None) if rows is None else rows
    pane_ms = computation.window.pane_ms
    panes = records.ts_ms[only] // pane_ms * pane_ms
    columns: dict[str, Any] = {"stream": pa.array(records.stream[only]), "pane": pa.array(panes)}
    if task:
        columns["task"] = pa.array(records.extras[task][only].astype(np.int64))
    for name, (_, key) in zip(layout.schema.key_names, computation.key, strict=True):
        columns[name] = canonical(evaluator.array(key))
    for index, (expression, slot) in enumerate(layout.slots[1:], start=1):
        assert expression is not None
        columns[f"s{index}"] = slot_input(evaluator, expression, slot)
    if layout.schema.moments:
        columns["row"] = pa.array(np.arange(len(panes)))
    values = {
        sketch.index: evaluator.array(sketch.aggregate.argument)
        for sketch in layout.sketches
        if sketch.aggregate.argument is not None
    }
    return Inputs(pa.table(columns), values)


def slot_input(evaluator: Evaluator, expression: Expression, slot: Slot) -> Any:
    """Return the input of a slot for each record."""
    value = evaluator.array(expression)
    if slot.of == "values":
        return value
    match slot.merge, expression.kind:
        case ((Merge.TOTAL | Merge.LINEAR), (Kind.INT | Kind.DECIMAL) as kind):
            fits = evaluator.largest(expression) * len(value) < _MOST[kind]
            return value if fits else value.cast(stored_type(slot.merge, kind))
        case Merge.MAX, Kind.FLOAT if evaluator.has_nan(expression):
            # Arrow leaves NaN out of the largest.
            return pa.array(float_codes(value.fill_null(0.0).to_numpy()),
                            mask=np.asarray(value.is_null()))  # fmt: skip
        case ((Merge.SQUARES | Merge.SQUARES_HIGH), kind):
            squares, high = squares_of(value, kind, evaluator.largest(expression))
            return squares if slot.merge is Merge.SQUARES else high
        case ((Merge.MEAN | Merge.REST | Merge.SPREAD | Merge.ERROR), _):
            return as_float(value)
    return value


def squares_of(value: Any, kind: Kind, largest: Any) -> tuple[Any, Any]:
    """Return the exact squares of whole numbers or decimals, and their multiples of `HIGH`.

    `largest`: the largest absolute value. The sums of both fit their types.
    """
    none = pa.repeat(pa.scalar(0, pa.int64()), len(value))
    if kind is Kind.INT and largest * largest < _MOST[kind]:
        squares = pc.multiply(value, value)
        fits = largest * largest * len(value) < _MOST[kind]
        return squares if fits else squares.cast(_SQUARES[kind]), none
    if kind is Kind.INT or int(largest) ** 2 * len(value) < HIGH // 10 ** _SQUARES[kind].scale // 2:
        # The product of two decimals has the digits of both and one more.
        wide = value.cast(pa.decimal256(37, value.type.scale if kind is Kind.DECIMAL else 0))
        return pc.multiply(wide, wide), none
    numbers = [None if item is None else int(item.scaleb(9, _EXACT)) for item in value.to_pylist()]
    pairs = [(None, None) if n is None else divmod(n * n, HIGH) for n in numbers]
    low = [None if rest is None else Decimal(rest).scaleb(-18, _EXACT) for _, rest in pairs]
    high = pa.array([None if many is None else Decimal(many) for many, _ in pairs],
                    stored_type(Merge.SQUARES_HIGH, kind))  # fmt: skip
    return pa.array(low, _SQUARES[kind]), high


def aggregate_slots(table: Any, names: Sequence[str], layout: Layout) -> Any:
    """Return one row per place and key, with the slots in the types in which they are kept.

    `table`: what `inputs_of` returns; `names`: its columns of place and keys.
    """
    slots = [(f"s{index}", slot) for index, (_, slot) in enumerate(layout.slots)][1:]
    moments = layout.schema.moments
    together = {name for names in moments for name in names}
    plain = [
        (name, "count" if slot.of == "values" else _PARTIALS.get(slot.merge, "sum"))
        for name, slot in slots
        if name not in together
    ]
    wanted: list[Any] = [([], "count_all"), *plain, *([("row", "list")] if moments else [])]
    result = table.group_by(list(names), use_threads=False).aggregate(wanted)
    result = result.rename_columns(
        [*names, "s0", *(name for name, _ in plain), *(["row"] if moments else [])]
    )
    columns = {name: result[name] for name in result.column_names}
    if moments:
        _add_moments(columns, table, moments)
    for name, slot in slots:
        columns[name] = _stored(columns[name], slot)
    return pa.table({name: columns[name] for name in [*names, *layout.schema.slot_names]})


def _stored(column: Any, slot: Slot) -> Any:
    wanted = stored_type(slot.merge, slot.kind)
    if slot.merge is Merge.MAX and pa.types.is_floating(column.type):
        values = column.combine_chunks()
        codes = float_codes(values.fill_null(0.0).to_numpy())
        return pa.array(codes, mask=np.asarray(values.is_null()))
    return column.cast(wanted)


def _add_moments(columns: dict[str, Any], table: Any, moments: Sequence[Moments]) -> None:
    """Compute the moments from the rows of each group."""
    order, starts = flatten_lists(columns.pop("row").combine_chunks())
    # Rows are numbered over the batch, of which some may be left out.
    rows = table["row"].to_numpy()
    places = np.empty(rows[-1] + 1 if len(rows) else 0, np.int64)
    places[rows] = np.arange(len(rows))
    place = places[order]
    for names in moments:
        values = table[names[1]].combine_chunks()
        valid = np.asarray(values.is_valid())[place]
        plain = values.fill_null(0.0).to_numpy()[place]
        result = moments_of(plain, valid, starts) if len(starts) else ([],) * len(names)
        for name, column in zip(names, result, strict=True):
            columns[name] = pa.array(column, pa.int64() if name == names[0] else pa.float64())


@dataclass(frozen=True)
class BatchPanes:
    """The panes of a batch for one computation.

    `rows`: a table of `stream`, `pane` (its start, ms), keys and slots; `cells`: one of the cells
    of its sketches and `blobs` one of the states of users' aggregates, None without any.
    `late`: which records came too late, `dropped`: what dropped records before
    (`selection.drop_causes`); None: none.
    """

    rows: Any
    cells: Any
    blobs: Any
    late: Any = None
    dropped: Any = None


def panes_of(
    records: Records,
    computation: Computation,
    streams: frozenset[int] | None = None,
    intake: Intake = DIRECT,
) -> BatchPanes:
    """Aggregate records of these streams (None: of all) per stream, pane and key.

    If the intake has a column with the task of each record, the tables have it as `task`.
    """
    layout = layout_of(computation)
    kept, late, dropped = select_records(records, computation, streams, intake)
    inputs = inputs_of(records, computation, layout, intake.column, kept)
    names = [*_PLACE, *(["task"] if intake.column else []), *layout.schema.key_names]
    result = aggregate_slots(inputs.table, names, layout)
    sketches = [_taken(value, inputs, inputs.table.select(names)) for value in layout.sketches]
    cells = [_cells([item for item in sketches if not is_user_aggregate(item.sketch)])]
    chance = kept_probabilities(records, intake)
    if chance is not None:
        places = inputs.table.select(names)
        cells.append(sample_cells(places, chance if kept is None else chance[kept]))
    cells = [table for table in cells if table is not None]
    return BatchPanes(
        result.cast(_schema(layout, intake.column)),
        pa.concat_tables(cells) if cells else None,
        _blobs([sketch for sketch in sketches if is_user_aggregate(sketch.sketch)]),
        late,
        dropped,
    )


class _Taken(NamedTuple):
    """A sketch with the places, and the values there that it takes (without nulls)."""

    sketch: SketchAggregate
    places: Any
    values: Any


def _taken(sketch: SketchAggregate, inputs: Inputs, places: Any) -> _Taken:
    values = inputs.sketched[sketch.index]
    if not values.null_count:
        return _Taken(sketch, places, values)
    there = pc.is_valid(values)
    return _Taken(sketch, places.filter(there), values.filter(there))


def _blobs(taken: Sequence[_Taken]) -> Any:
    """Return the states of all users' aggregates per place and key."""
    result = [partial_states(*item) for item in taken]
    return pa.concat_tables(result) if result else None


def _cells(taken: Sequence[_Taken]) -> Any:
    """Return the cells of all sketches, merged per place and key."""
    if not taken:
        return None
    table = pa.concat_tables([_sketched(*item) for item in taken])
    names = [*taken[0].places.column_names, *CELL]
    grouped = table.group_by(names, use_threads=False).aggregate(
        [("added", "sum"), ("largest", "max")]
    )
    return coarsen_full_sketches(grouped.rename_columns([*names, "added", "largest"]), names)


def _sketched(sketch: SketchAggregate, places: Any, values: Any) -> Any:
    aggregate = sketch.aggregate
    assert aggregate.argument is not None
    cells = coarsen_full_cells(
        cells_of(aggregate.kept.sketch, values, aggregate.argument.kind), places
    )
    columns = {
        "a": pa.repeat(pa.scalar(sketch.index, pa.int64()), len(values)),
        "c": _column(cells.cell, len(values)),
        "t": pa.nulls(len(values), pa.string()) if cells.item is None else cells.item,
        "added": _column(cells.added, len(values)),
        "largest": _column(cells.largest, len(values)),
    }
    for name, column in columns.items():
        places = places.append_column(name, column)
    return places


def _column(numbers: Any, size: int) -> Any:
    return pa.nulls(size, pa.int64()) if numbers is None else pa.array(numbers)


def _schema(layout: Layout, task: str) -> Any:
    place = [(name, pa.int64()) for name in (*_PLACE, *(["task"] if task else []))]
    return pa.schema([*place, *layout.schema.fields])
