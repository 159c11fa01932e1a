"""The columns of a batch that a computation aggregates: place, keys, values of slots and sketches.

Everything is evaluated for all records of the batch, which queries share. If that raises a fault,
such as an overflow, it is evaluated again for the selected records alone: a record that a query
leaves out cannot end it.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from controlplane.wire.aggregates.layout import Layout
from controlplane.wire.language.aggregates import Merge
from controlplane.wire.query import Computation
from workers.pipeline.engine.aggregation.slots import slot_input
from workers.pipeline.engine.arrow import pa
from workers.pipeline.engine.evaluation.evaluator import Evaluator, Rows
from workers.pipeline.engine.evaluation.records import Records
from workers.pipeline.engine.failures.fault import QueryFault
from workers.pipeline.engine.kernels.types import canonical


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
    if any(slot.merge is Merge.WEIGHT for _, slot in layout.slots):
        columns["row"] = pa.array(np.arange(len(panes)))
    values = {
        sketch.index: evaluator.array(sketch.aggregate.argument)
        for sketch in layout.sketches
        if sketch.aggregate.argument is not None
    }
    return Inputs(pa.table(columns), values)
