"""Slots of a batch: the input per record, and the aggregates of each pane and key."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from controlplane.wire.aggregates.floats import float_codes
from controlplane.wire.aggregates.grouping import flatten_lists
from controlplane.wire.aggregates.layout import Layout, Moments, stored_type
from controlplane.wire.aggregates.moments import moments_of
from controlplane.wire.language.aggregates import Merge, Slot
from controlplane.wire.language.tree import Expression, Kind
from workers.pipeline.engine.arrow import pa
from workers.pipeline.engine.evaluation.evaluator import Evaluator
from workers.pipeline.engine.kernels.types import as_float

# What all values of a batch may sum up to without an overflow of their own type.
_MOST: Final = {Kind.INT: 2**63, Kind.DECIMAL: 10**29}
# How records become a slot; moments are computed of the rows of a group.
_PARTIALS: Final = {Merge.SUM: "sum", Merge.MIN: "min", Merge.MAX: "max", Merge.TOTAL: "sum"}


def slot_input(evaluator: Evaluator, expression: Expression, slot: Slot) -> Any:
    """Return the input of a slot for each record."""
    value = evaluator.array(expression)
    if slot.of == "values":
        return value
    match slot.merge, expression.kind:
        case Merge.TOTAL, (Kind.INT | Kind.DECIMAL) as kind:
            fits = evaluator.largest(expression) * len(value) < _MOST[kind]
            return value if fits else value.cast(stored_type(slot.merge, kind))
        case Merge.MAX, Kind.FLOAT if evaluator.has_nan(expression):
            # Arrow leaves NaN out of the largest.
            return pa.array(float_codes(value.fill_null(0.0).to_numpy()),
                            mask=np.asarray(value.is_null()))  # fmt: skip
        case ((Merge.MEAN | Merge.REST | Merge.SPREAD), _):
            return as_float(value)
    return value


def aggregate_slots(table: Any, names: Sequence[str], layout: Layout) -> Any:
    """Return one row per place and key, with the slots in the types in which they are kept.

    `table`: what `inputs_of` returns; `names`: its columns of place and keys.
    """
    slots = [(f"s{index}", slot) for index, (_, slot) in enumerate(layout.slots)][1:]
    plain = [
        (name, "count" if slot.of == "values" else _PARTIALS[slot.merge])
        for name, slot in slots
        if slot.merge in _PARTIALS
    ]
    moments = layout.schema.moments
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
    place = np.searchsorted(table["row"].to_numpy(), order)
    for names in moments:
        values = table[names[1]].combine_chunks()
        valid = np.asarray(values.is_valid())[place]
        plain = values.fill_null(0.0).to_numpy()[place]
        result = moments_of(plain, valid, starts) if len(starts) else ([], [], [], [])
        for name, column in zip(names, result, strict=True):
            columns[name] = pa.array(column, pa.int64() if name == names[0] else pa.float64())
