"""Windowed equi-joins: the records of two sides, paired where they meet in a window.

A task keeps the records of its windows as a multiset: equal records are one row with a count. When
a window gets a record it is paired and aggregated again, so what it emits is always whole.
"""

from dataclasses import replace
from typing import Any, Final

import numpy as np

from controlplane.wire.aggregates.layout import layout_of
from controlplane.wire.aggregates.state_schema import pairs_name, schema_named, schema_names
from controlplane.wire.language.tree import Column, Expression
from controlplane.wire.query import Computation, Join
from workers.pipeline.engine.aggregation.panes import BatchPanes, panes_of
from workers.pipeline.engine.aggregation.selection import select_records
from workers.pipeline.engine.arrow import pa, pc
from workers.pipeline.engine.assignment.subscriptions import Intake
from workers.pipeline.engine.evaluation.records import NO_WATERMARK, Int64s, Records
from workers.pipeline.engine.failures.fault import QueryFault
from workers.pipeline.engine.kernels.types import canonical
from workers.pipeline.engine.storage.window_state import windows_of

# Pairs of one batch and task at most; more is an error of the query, not of the machine.
MAX_PAIRS: Final = 20_000_000
_OWNER: Final = ("query", "run", "task")


class TooManyPairs(QueryFault):
    """The windows of a join would have more pairs than memory allows."""

    def __init__(self, query: int, pairs: int) -> None:
        super().__init__(
            f"joins {pairs:,} pairs of records in a batch, at most {MAX_PAIRS:,} are allowed: "
            "narrow its windows or what must be equal",
            query,
        )


def join_sides(
    records: Records, computation: Computation, streams: frozenset[int], intake: Intake
) -> BatchPanes:
    """Return the records of a join as rows of its state schema, each in all of its windows.

    The column `pane` is where the window begins; `stream` is still the record's own.
    """
    join = computation.join
    assert join is not None
    kept, late, dropped = select_records(records, replace(computation, where=None), streams, intake)
    right = np.isin(records.stream, list(join.right))
    taken = np.ones(len(records), np.bool_) if kept is None else kept
    # Records of one side have not the columns of the other, where these are of other streams.
    sides = [side for side in (0, 1) if (right == bool(side)).any()]
    tables = [
        _side(records, computation, join, side, np.flatnonzero(taken & (right == bool(side))))
        for side in sides
    ]
    rows = pa.concat_tables(tables)
    return BatchPanes(rows, None, None, late, dropped)


def _side(
    records: Records, computation: Computation, join: Join, side: int, selected: Int64s
) -> Any:
    """Return the records of one side, without those whose key is null."""
    columns = (join.left, join.right_columns)
    keys = [canonical(_values(records, pair[side], selected)) for pair in join.on]
    valid = np.ones(len(selected), np.bool_)
    for key in keys:
        valid &= np.asarray(key.is_valid())
    keys, selected = [key.filter(pa.array(valid)) for key in keys], selected[valid]
    row, start = windows_of(records.ts_ms[selected], computation.window, 1)
    result: dict[str, Any] = {
        "stream": pa.array(records.stream[selected][row]),
        "pane": pa.array(start),
    }
    result["side"] = pa.array(np.full(len(row), side))
    result |= {f"k{place}": key.take(pa.array(row)) for place, key in enumerate(keys)}
    for name, of, there in (("a", columns[0], side == 0), ("b", columns[1], side == 1)):
        for place, column in enumerate(of):
            result[f"{name}{place}"] = _taken(records, column, selected[row], there)
    result["s0"] = pa.array(np.ones(len(row), np.int64))
    form = schema_named(pairs_name(computation))
    names = [field for field in form.arrow.names if field not in _OWNER]
    return pa.table(result).select(names).cast(pa.schema([form.arrow.field(n) for n in names]))


def _taken(records: Records, column: Column, rows: Int64s, there: bool) -> Any:
    if not there:
        return pa.nulls(len(rows))
    return _values(records, Column(column.name.partition(".")[2], column.kind), rows)


def _values(records: Records, expression: Expression, rows: Int64s) -> Any:
    """Return the values of some records; others, of the other side, may have none."""
    try:
        return records.evaluator.array(expression).take(pa.array(rows))
    except QueryFault:
        return records.evaluator.within(rows).array(expression)


def join_windows(computation: Computation, query: int, rows: Any) -> dict[str, Any]:
    """Return the windows of these rows by schema name, paired and aggregated as a whole.

    `rows`: all of one query and the windows that changed. Raises `TooManyPairs`.
    """
    join, layout = computation.join, layout_of(computation)
    assert join is not None
    pairs = _paired(join, query, rows)
    bare = replace(computation, join=None)
    sides = (("a", join.left), ("b", join.right_columns))
    columns = {column.name: pairs[f"{side}{index}"]
               for side, own in sides for index, column in enumerate(own)}  # fmt: skip
    pane = np.asarray(pairs["pane"])
    task = np.asarray(pairs["task"])
    watermarks = np.full(len(task), NO_WATERMARK)
    # The task stands where a stream would: both distinguish parts of a window.
    records = Records(pa.table(columns), pane, task, watermarks, frozenset(task.tolist()))
    result = panes_of(records, bare)
    incarnation = int(rows["run"][0].as_py())
    tables = zip(schema_names(layout), (result.rows, result.cells, result.blobs), strict=True)
    return {
        name: _owned(table, query, incarnation).select(schema_named(name).arrow.names)
        for name, table in tables
        if table is not None and len(table)
    }


def _paired(join: Join, query: int, rows: Any) -> Any:
    """Return a row per pair of records: task, pane, and the columns of both."""
    meet = ["task", "pane", *(f"k{index}" for index in range(len(join.on)))]
    sides = []
    for side, name, columns in ((0, "a", join.left), (1, "b", join.right_columns)):
        part = rows.filter(pc.equal(rows["side"], side))
        names = [f"{name}{index}" for index in range(len(columns))]
        sides.append(part.select([*meet, *names, "s0"]).rename_columns([*meet, *names, f"n{name}"]))
    met = sides[0].join(sides[1], keys=meet, join_type="inner", use_threads=False)
    count = np.asarray(met["na"]) * np.asarray(met["nb"])
    if count.sum() > MAX_PAIRS:
        raise TooManyPairs(query, int(count.sum()))
    return met.take(pa.array(np.repeat(np.arange(len(met)), count)))


def _owned(table: Any, query: int, incarnation: int) -> Any:
    column_index = table.schema.get_field_index("stream")
    size, task = len(table), table["stream"]
    table = table.set_column(column_index, "stream", pa.array(np.zeros(size, np.int64)))
    table = table.append_column("task", task)
    for name, value in (("query", query), ("run", incarnation)):
        table = table.append_column(name, pa.array(np.full(size, value)))
    return table
