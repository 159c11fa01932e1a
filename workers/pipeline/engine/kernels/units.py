"""Decimals as whole numbers of units of 1e-9, for numpy."""

from decimal import Decimal
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from controlplane.wire.aggregates.layout import ARROW
from controlplane.wire.language.tree import Kind
from workers.pipeline.engine.arrow import pa, pc

Units = NDArray[np.int64]
SCALE: Final = 9
_DECIMAL: Final = ARROW[Kind.DECIMAL]
_PER_ONE: Final = 10**SCALE
# Whole numbers up to here are floats; the quotient of two such is the nearest float.
_EXACT: Final = 2**53


def units_of(value: Any, largest: int = 2**62) -> Units | None:
    """Return the units of each record, 0 for null; None if any is larger than `largest`."""
    filled = value.fill_null(pa.scalar(Decimal(0), _DECIMAL)) if value.null_count else value
    words = np.frombuffer(filled.buffers()[1], np.int64)
    pairs = words[2 * filled.offset : 2 * (filled.offset + len(filled))].reshape(-1, 2)
    low, high = pairs[:, 0], pairs[:, 1]
    fits = (high == low >> 63) & (low <= largest) & (low >= -largest)
    return np.ascontiguousarray(low) if fits.all() else None


def of_units(units: Units, null: NDArray[np.bool_] | None) -> Any:
    """Return decimals from their units."""
    words = np.empty((len(units), 2), np.int64)
    words[:, 0], words[:, 1] = units, units >> 63
    result = pa.Array.from_buffers(_DECIMAL, len(units), [None, pa.py_buffer(words)])
    if null is None or not null.any():
        return result
    return pc.if_else(pa.array(~null), result, pa.scalar(None, _DECIMAL))


def floats_of_decimals(value: Any) -> Any:
    """Return decimals as the nearest floats; Arrow's own cast is off by some last digits."""
    if isinstance(value, pa.Scalar):
        return pa.scalar(None if value.as_py() is None else float(value.as_py()), pa.float64())
    units = units_of(value)
    if units is None:
        return value.cast(pa.string()).cast(pa.float64())
    whole, rest = np.divmod(units, _PER_ONE)
    result = np.where(np.abs(units) <= _EXACT, units / _PER_ONE, whole + rest / _PER_ONE)
    return pa.array(result, mask=np.asarray(value.is_null()) if value.null_count else None)
