"""Slots and sketches to the values that were asked for: the last step, at the reader.

What was kept of a window in parts (streams, tasks of a split key, runs of a moved query) is merged
here, in any order; so a reader sees each record exactly once.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import pyarrow as pa

from controlplane.wire.forms import OWNER, Form, named, names_of
from controlplane.wire.language.aggregates import Aggregate
from controlplane.wire.language.registered import registered_aggregate
from controlplane.wire.layout import Layout, layout_of
from controlplane.wire.query import Computation
from controlplane.wire.sketches import FINISHERS

# What tells parts of one window apart.
_PARTS: Final = (*OWNER, "stream")
_BATCH: Final = "batch"


@dataclass(frozen=True, slots=True)
class WindowRow:
    """One window of one key: its start (event time, ms), the key and the aggregates by name.

    `batch`: the newest micro-batch that changed it. `parts`: how many were merged.
    """

    start_ms: int
    key: Mapping[str, Any]
    values: Mapping[str, Any]
    batch: int
    parts: int


def finished(computation: Computation, tables: Mapping[str, Any]) -> list[WindowRow]:
    """Return the windows of a query from the newest rows of each of its parts, by form's name.

    Each table has the columns of its form and `batch`.
    """
    layout = layout_of(computation)
    slots, cells, blobs = names_of(layout)
    if slots not in tables:
        return []
    rows = _merged(named(slots), tables[slots])
    extra = _Extra(computation, layout, tables.get(cells), tables.get(blobs))
    names = [name for name, _ in computation.key]
    found = []
    for row in rows.to_pylist():
        key = [_plain(row[column]) for column in layout.shape.key_names]
        numbers = [row[column] for column in layout.shape.slot_names]
        place = (row["pane"], *(row[column] for column in layout.shape.key_names))
        values = {
            name: extra.value(place, at, aggregate)
            if aggregate.kept.sketch
            else _plain(value_of(aggregate, [numbers[slot] for slot in layout.places[at]]))
            for at, (name, aggregate) in enumerate(computation.aggregates)
        }
        key_of = dict(zip(names, key, strict=True))
        found.append(WindowRow(row["pane"], key_of, values, row[_BATCH], row["parts"]))
    return found


def value_of(aggregate: Aggregate, slots: Sequence[Any]) -> Any:
    """Return an aggregate from its merged slots, None where no record had a value."""
    match aggregate.function:
        case "count" | "min" | "max":
            return slots[0]
        case "sum":
            return slots[1]
        case "mean":
            return slots[1] / slots[0] if slots[0] else None
        case "variance":
            return _variance(*slots)
        case "stddev":
            spread = _variance(*slots)
            return None if spread is None else math.sqrt(spread)
    raise LookupError(f"there is no aggregate {aggregate.function}")


def _variance(count: int, total: float | None, squares: float | None) -> float | None:
    if count < 2 or total is None or squares is None:  # noqa: PLR2004 - of a sample
        return None
    return max(0.0, (squares - total * total / count) / (count - 1))


def _plain(value: Any) -> Any:
    """Return times as milliseconds: what is read may travel as JSON."""
    return round(value.timestamp() * 1000) if isinstance(value, datetime) else value


def _merged(form: Form, table: Any) -> Any:
    """Merge the parts of each window; `parts` counts them."""
    names = [name for name in form.identity if name not in _PARTS]
    grouped = table.group_by(names, use_threads=False).aggregate(
        [*form.merges, (_BATCH, "max"), ([], "count_all")]
    )
    return grouped.rename_columns([*names, *(name for name, _ in form.merges), _BATCH, "parts"])


class _Extra:
    """Sketches and users' aggregates by place: window and key."""

    def __init__(self, computation: Computation, layout: Layout, cells: Any, blobs: Any) -> None:
        self._works = {
            sketch.at: registered_aggregate(sketch.aggregate.kept.sketch)
            for sketch in layout.sketches
        }
        self._cells: dict[Any, dict[Any, int]] = {}
        self._states: dict[Any, list[bytes]] = {}
        keys, cells_name, blobs_name = layout.shape.key_names, *names_of(layout)[1:]
        if cells is not None:
            for row in _merged(named(cells_name), cells).to_pylist():
                place = (row["pane"], *(row[key] for key in keys), row["a"])
                number = row["added"] if row["largest"] is None else row["largest"]
                cell = row["c"] if row["t"] is None else row["t"]
                self._cells.setdefault(place, {})[cell] = number
        if blobs is not None:
            for row in _merged(named(blobs_name), blobs).to_pylist():
                place = (row["pane"], *(row[key] for key in keys), row["a"])
                self._states[place] = row["state"]

    def value(self, place: tuple[Any, ...], at: int, aggregate: Aggregate) -> Any:
        """Return the value of the aggregate at a place among the query's aggregates."""
        known = self._works.get(at)
        if known is None:
            cells = self._cells.get((*place, at), {})
            finish = FINISHERS[aggregate.kept.sketch]
            return finish(cells, aggregate.setting or 0.0)
        states = self._states.get((*place, at))
        if not states:
            return None
        state = states[0]
        for other in states[1:]:
            state = known.work.merge(state, other)
        return known.work.result(state)


def newest(form: Form, entries: Sequence[tuple[int, Any]]) -> Any:
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
    columns = [name for name in table.column_names if name not in names]
    grouped = table.group_by(names, use_threads=False).aggregate(
        [(name, "last") for name in columns]
    )
    return grouped.rename_columns([*names, *columns])
