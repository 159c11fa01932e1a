"""Records to panes: the pane-level part of every computation (paper 001, section 4.2).

A pane holds the aggregates of one stream's records of one key in one span of event time. Panes are
computed once for all queries with the same computation, so that the work per record does not grow
with the queries that share it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from controlplane.wire.forms import CELL
from controlplane.wire.language.aggregates import Slot
from controlplane.wire.language.tree import Expression, Kind
from controlplane.wire.layout import ARROW, Layout, Sketched, layout_of
from controlplane.wire.query import Computation
from workers.pipeline.engine.arrow import pa, pc
from workers.pipeline.engine.compute import Evaluator
from workers.pipeline.engine.records import LUCK, Records
from workers.pipeline.engine.shedding import is_dropped
from workers.pipeline.engine.sketches import cells_of, keeps_largest
from workers.pipeline.engine.subscriptions import DIRECT, Drops, Intake
from workers.pipeline.engine.users import is_users, partial_states

_PLACE: Final = ("stream", "pane")


@dataclass(frozen=True)
class Panes:
    """What a batch adds to a computation.

    `rows`: a table of `stream`, `pane` (its start, ms), keys and slots; `cells`: one of the cells
    of its sketches and `blobs` one of the states of users' aggregates, None without any.
    `selected`: how many records went in; `late`: which came too late, `gone`: which arcs dropped
    before (None: none).
    """

    rows: Any
    cells: Any
    blobs: Any
    selected: int
    late: Any = None
    gone: Any = None


def panes_of(
    records: Records,
    computation: Computation,
    streams: frozenset[int] | None = None,
    intake: Intake = DIRECT,
) -> Panes:
    """Aggregate records of these streams (None: of all) per stream, pane and key.

    Where the intake says the task of each record, the tables have it as the column `task`.
    """
    layout = layout_of(computation)
    kept, late, gone = kept_of(records, computation, streams, intake)
    table = _inputs(records, computation, layout, intake.column, kept)
    names = [*_PLACE, *(["task"] if intake.column else []), *layout.shape.key_names]
    grouped = table.group_by(names, use_threads=False).aggregate(
        [([], "count_all"), *_partials(layout)]
    )
    found = grouped.rename_columns(names + layout.shape.slot_names)
    sketches = [
        _Taken(one, *_taken_of(one, records, kept, table.select(names))) for one in layout.sketches
    ]
    return Panes(
        found.cast(_schema(layout, intake.column)),
        _cells([one for one in sketches if not is_users(one.sketch)]),
        _blobs([one for one in sketches if is_users(one.sketch)]),
        len(table),
        late,
        gone,
    )


def kept_of(
    records: Records,
    computation: Computation,
    streams: frozenset[int] | None,
    intake: Intake,
) -> tuple[Any, Any, Any]:
    """Return which records go in (None: all), which were late, and which ones arcs drop."""
    gone = _dropped(records, intake.drops)
    return *_kept(records, computation, streams, gone), gone


def _dropped(records: Records, drops: Drops) -> Any:
    """Return which records the arcs drop, None for none."""
    if not drops:
        return None
    gone = np.zeros(len(records), np.bool_)
    for stream, shed in drops:
        mine = np.flatnonzero(records.stream == stream)
        if not len(mine):
            # Where no stream's arc drops, split nodes say nothing of luck.
            continue
        gone[mine] = is_dropped(shed, records.extras[LUCK][mine], records.ts_ms[mine])
    return gone


def _kept(
    records: Records, computation: Computation, streams: frozenset[int] | None, gone: Any
) -> tuple[Any, Any]:
    """Return which records are selected and on time (None: all), and which were late."""
    wanted = _wanted(records, computation, streams)
    if gone is not None:
        wanted = ~gone if wanted is None else wanted & ~gone
    late = records.is_late(computation.lateness_ms)
    if not late.any():
        return wanted, None
    # A record that the query does not want is not late for it.
    too_late = late if wanted is None else late & wanted
    return (~late if wanted is None else wanted & ~late), too_late


def _wanted(records: Records, computation: Computation, streams: frozenset[int] | None) -> Any:
    """Return which records a computation selects, None for all."""
    mine = None
    if streams is not None and not records.streams <= streams:
        mine = np.isin(records.stream, list(streams))
    if computation.where is None:
        return mine
    found = pc.fill_null(records.evaluator.array(computation.where), fill_value=False)
    selected = np.asarray(found)
    return selected if mine is None else selected & mine


def _inputs(
    records: Records, computation: Computation, layout: Layout, task: str, kept: Any
) -> Any:
    """Return the columns to be grouped: place, keys, and the value that each slot takes."""
    pane_ms = computation.window.pane_ms
    panes = records.ts_ms // pane_ms * pane_ms
    columns: dict[str, Any] = {"stream": pa.array(records.stream), "pane": pa.array(panes)}
    if task:
        columns["task"] = pa.array(records.extras[task].astype(np.int64))
    evaluator = records.evaluator
    for name, (_, key) in zip(layout.shape.key_names, computation.key, strict=True):
        columns[name] = evaluator.array(key)
    for at, (expression, slot) in enumerate(layout.slots[1:], start=1):
        columns[f"s{at}"] = _taken(evaluator, expression, slot)
    table = pa.table(columns)
    return table if kept is None else table.filter(pa.array(kept))


def _taken(evaluator: Evaluator, expression: Expression | None, slot: Slot) -> Any:
    """Return what a slot takes of each record."""
    assert expression is not None
    value = evaluator.array(expression)
    match slot.of:
        case "values":
            return value
        case "square":
            numbers = value.cast(ARROW[Kind.FLOAT])
            return pc.multiply(numbers, numbers)
    return value


class _Taken(NamedTuple):
    """A sketch with the places, and the values there that it takes (without nulls)."""

    sketch: Sketched
    places: Any
    values: Any


def _taken_of(sketch: Sketched, records: Records, kept: Any, places: Any) -> tuple[Any, Any]:
    assert sketch.aggregate.argument is not None
    values = records.evaluator.array(sketch.aggregate.argument)
    if kept is not None:
        values = values.filter(pa.array(kept))
    there = pc.is_valid(values)
    return places.filter(there), values.filter(there)


def _blobs(taken: Sequence[_Taken]) -> Any:
    """Return the states of all users' aggregates per place and key."""
    found = [partial_states(*one) for one in taken]
    return pa.concat_tables(found) if found else None


def _cells(taken: Sequence[_Taken]) -> Any:
    """Return the cells of all sketches, merged per place and key."""
    if not taken:
        return None
    table = pa.concat_tables([_sketched(*one) for one in taken])
    names = [*taken[0].places.column_names, *CELL]
    grouped = table.group_by(names, use_threads=False).aggregate(
        [("added", "sum"), ("largest", "max")]
    )
    return grouped.rename_columns([*names, "added", "largest"])


def _sketched(sketch: Sketched, places: Any, values: Any) -> Any:
    cell, item, number = cells_of(sketch.aggregate.kept.sketch, values)
    count = len(values)
    nothing = pa.nulls(count, pa.int64())
    largest = keeps_largest(sketch.aggregate.kept.sketch)
    columns = {
        "a": pa.repeat(pa.scalar(sketch.at, pa.int64()), count),
        "c": nothing if cell is None else pa.array(cell),
        "t": pa.nulls(count, pa.string()) if item is None else item,
        "added": nothing if largest else pa.array(number),
        "largest": pa.array(number) if largest else nothing,
    }
    for name, column in columns.items():
        places = places.append_column(name, column)
    return places


def _partials(layout: Layout) -> list[tuple[str, str]]:
    """Return how each slot behind the first is aggregated from records."""
    return [
        (f"s{at}", "count" if slot.of == "values" else str(slot.merge))
        for at, (_, slot) in enumerate(layout.slots[1:], start=1)
    ]


def _schema(layout: Layout, task: str) -> Any:
    place = [(name, pa.int64()) for name in (*_PLACE, *(["task"] if task else []))]
    return pa.schema([*place, *layout.shape.fields])
