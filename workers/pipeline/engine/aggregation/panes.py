"""Records to panes: the pane-level part of every computation (paper 001, section 4.2).

A pane holds the aggregates of one stream's records of one key in one range of event time. Panes are
computed once for all queries with the same computation, so that the work per record does not grow
with the queries that share it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from controlplane.wire.aggregates.grouping import coarsen_full_sketches
from controlplane.wire.aggregates.layout import Layout, SketchAggregate, layout_of
from controlplane.wire.aggregates.state_schema import CELL
from controlplane.wire.query import Computation
from workers.pipeline.engine.aggregation.inputs import Inputs, inputs_of
from workers.pipeline.engine.aggregation.selection import select_records
from workers.pipeline.engine.aggregation.sketches import cells_of, coarsen_full_cells
from workers.pipeline.engine.aggregation.slots import aggregate_slots
from workers.pipeline.engine.arrow import pa, pc
from workers.pipeline.engine.assignment.subscriptions import DIRECT, Intake
from workers.pipeline.engine.evaluation.records import Records
from workers.pipeline.engine.evaluation.user_aggregates import is_user_aggregate, partial_states

_PLACE: Final = ("stream", "pane")


@dataclass(frozen=True)
class Panes:
    """The panes of a batch for one computation.

    `rows`: a table of `stream`, `pane` (its start, ms), keys and slots; `cells`: one of the cells
    of its sketches and `blobs` one of the states of users' aggregates, None without any.
    `late`: which records came too late, `dropped`: which ones edges dropped before (None: none).
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
) -> Panes:
    """Aggregate records of these streams (None: of all) per stream, pane and key.

    If the intake has a column with the task of each record, the tables have it as `task`.
    """
    layout = layout_of(computation)
    kept, late, dropped = select_records(records, computation, streams, intake)
    inputs = inputs_of(records, computation, layout, intake.column, kept)
    names = [*_PLACE, *(["task"] if intake.column else []), *layout.schema.key_names]
    result = aggregate_slots(inputs.table, names, layout)
    sketches = [_taken(value, inputs, inputs.table.select(names)) for value in layout.sketches]
    return Panes(
        result.cast(_schema(layout, intake.column)),
        _cells([item for item in sketches if not is_user_aggregate(item.sketch)]),
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
