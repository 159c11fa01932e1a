"""Convert records to the cells of sketches (`controlplane.wire.aggregates.sketches`)."""

from typing import Any, Final, NamedTuple

import numpy as np

from controlplane.wire.aggregates.floats import float_codes
from controlplane.wire.aggregates.grouping import EXACT_VALUES
from controlplane.wire.aggregates.sketches import (
    HASH,
    QUANTILE,
    coarse_cells,
    hash_cells,
    value_cells,
)
from controlplane.wire.language.tree import Kind
from workers.pipeline.engine.arrow import pa
from workers.pipeline.engine.hashing import hash_rows
from workers.pipeline.engine.kernels.types import as_float

# So many records show whether a sketch has too many different values to be exact.
_PROBE: Final = 4 * EXACT_VALUES


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
