"""The samples of windows under drop rules: estimates of all records from those that were kept.

A record that was kept with probability p stands for w = 1 / p records (Horvitz and Thompson, 1952).
So the sum of w - 1 over the kept records of a window and key estimates without bias how many others
there were, and the sum of w (w - 1) estimates the variance of that. Both are cells beside those of
sketches, so they merge with the state of the window, whatever rules its records met and when.
Records that no rule could drop add nothing: without drop rules there are no such cells.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

# In a cell's place of the aggregate: none has this index.
SAMPLE: Final = -1
# The cells of a sample: the sum of w - 1, and the sum of w (w - 1), in units of one over `_UNITS`.
_MISSING: Final = 0
_VARIANCE: Final = 1
_UNITS: Final = 1 << 16


class Sampled(NamedTuple):
    """The sample of a window and key, which drop rules took.

    `records`: how many were kept; `missing`: the estimated number of others; `variance`: of that.
    """

    records: int
    missing: float
    variance: float

    @property
    def kept(self) -> float:
        """Return the estimated fraction of the records that was kept, below 1, to six digits."""
        return min(round(self.records / (self.records + self.missing), 6), 1 - 1e-6)


def sample_cells(places: Any, kept: NDArray[np.float64]) -> Any:
    """Return the cells of samples per place and key, None if no record could be dropped.

    `places`: a table with a row for each kept record; `kept`: the probability at which rules kept
    it, above 0.
    """
    at_risk = kept < 1
    if not at_risk.any():
        return None
    names, weight = places.column_names, 1 / kept[at_risk]
    places = places.filter(pa.array(at_risk))
    parts = []
    for cell, value in ((_MISSING, weight - 1), (_VARIANCE, weight * (weight - 1))):
        added = places.append_column("added", pa.array(np.rint(value * _UNITS).astype(np.int64)))
        grouped = added.group_by(names, use_threads=False).aggregate([("added", "sum")])
        columns = {name: grouped[name] for name in names}
        columns |= {"a": _same(SAMPLE, grouped), "c": _same(cell, grouped)}
        columns |= {"t": pa.nulls(len(grouped), pa.string()), "added": grouped["added_sum"]}
        parts.append(pa.table(columns | {"largest": pa.nulls(len(grouped), pa.int64())}))
    return pa.concat_tables(parts)


def _same(number: int, table: Any) -> Any:
    return pa.repeat(pa.scalar(number, pa.int64()), len(table))


def sampled_of(records: int, cells: Sequence[tuple[int, int]]) -> Sampled | None:
    """Return the sample of a window and key from its cells, None if it misses nothing."""
    sums = dict(cells)
    if not sums.get(_MISSING):
        return None
    return Sampled(records, sums[_MISSING] / _UNITS, sums[_VARIANCE] / _UNITS)
