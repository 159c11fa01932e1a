"""Values of kernels: arrays and constants, and the conversion of their types."""

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import reduce
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from controlplane.wire.aggregates.layout import ARROW
from controlplane.wire.language.tree import Kind
from workers.pipeline.engine.arrow import pa, pc

# An array of one value per record, or a scalar that stands for all of them.
Value = Any
Kernel = Callable[..., Value]

FLOAT: Final = ARROW[Kind.FLOAT]
DECIMAL: Final = ARROW[Kind.DECIMAL]
INT: Final = ARROW[Kind.INT]
# Decimals as whole numbers of units of 1e-9, for numpy.
Units = NDArray[np.int64]
SCALE: Final = 9
_PER_ONE: Final = 10**SCALE
# Whole numbers up to here are floats; the quotient of two such is the nearest float.
_EXACT: Final = 2**53


def units_of(value: Any, largest: int = 2**62) -> Units | None:
    """Return the units of each record, 0 for null; None if any is larger than `largest`."""
    filled = value.fill_null(pa.scalar(Decimal(0), DECIMAL)) if value.null_count else value
    words = np.frombuffer(filled.buffers()[1], np.int64)
    pairs = words[2 * filled.offset : 2 * (filled.offset + len(filled))].reshape(-1, 2)
    low, high = pairs[:, 0], pairs[:, 1]
    fits = (high == low >> 63) & (low <= largest) & (low >= -largest)
    return np.ascontiguousarray(low) if fits.all() else None


def of_units(units: Units, null: NDArray[np.bool_] | None) -> Any:
    """Return decimals from their units."""
    words = np.empty((len(units), 2), np.int64)
    words[:, 0], words[:, 1] = units, units >> 63
    result = pa.Array.from_buffers(DECIMAL, len(units), [None, pa.py_buffer(words)])
    if null is None or not null.any():
        return result
    return pc.if_else(pa.array(~null), result, pa.scalar(None, DECIMAL))


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


def is_float(value: Value) -> bool:
    """Return whether a value is of floats."""
    return bool(pa.types.is_floating(value.type))


def is_decimal(value: Value) -> bool:
    """Return whether a value is of decimals."""
    return bool(pa.types.is_decimal(value.type))


def as_float(value: Value) -> Value:
    """Return numbers as the nearest floats."""
    if is_float(value):
        return value
    # A checked cast refuses whole numbers beyond 2 ** 53.
    return floats_of_decimals(value) if is_decimal(value) else value.cast(FLOAT, safe=False)


def has_nan(value: Value) -> bool:
    """Return whether any number is NaN."""
    if not is_float(value):
        return False
    if isinstance(value, pa.Scalar):
        return value.is_valid and math.isnan(value.as_py())
    if value.null_count:
        return bool(pc.any(pc.is_nan(value)).as_py())
    return bool(np.isnan(value.to_numpy()).any())


def widest_type(values: Sequence[Value]) -> Any:
    """Return the Arrow type to which all values widen: of numbers the widest, else the common."""
    types = [value.type for value in values if not pa.types.is_null(value.type)]
    for result in (FLOAT, DECIMAL):
        if result in types:
            return result
    return types[0] if types else pa.null()


def group_alike(*values: Value) -> list[Value]:
    """Return the values in the type that holds all of them; a null takes the others' type."""
    wanted = widest_type(values)
    return [value if value.type == wanted else _cast(value, wanted) for value in values]


def _cast(value: Value, wanted: Any) -> Value:
    if wanted == FLOAT and not pa.types.is_null(value.type):
        return as_float(value)
    return value.cast(wanted)


def in_kind(value: Value, kind: Kind) -> Value:
    """Return a value in a kind that holds it: of its own, or a wider kind of number.

    Raises `ArrowInvalid` for a number that does not fit.
    """
    wanted = ARROW[kind]
    return value if value.type == wanted else _cast(value, wanted)


def widened(kernel: Kernel) -> Kernel:
    """Return a kernel of two values as one of any number, which sees them in one type."""
    return lambda *values: reduce(kernel, group_alike(*values))


def plain_zeros(value: Value) -> Value:
    """Return floats with one zero: -0.0 becomes 0.0."""
    return pc.add(value, 0.0) if is_float(value) else value


def canonical(value: Value) -> Value:
    """Return floats with one zero and one NaN, as keys need them; other values as they are."""
    if not is_float(value):
        return value
    result = plain_zeros(value)
    return pc.if_else(pc.is_nan(result), float("nan"), result) if has_nan(result) else result


def rows_of(values: Sequence[Value]) -> int:
    """Return the number of records of these values; 1 for constants only."""
    return next((len(value) for value in values if not isinstance(value, pa.Scalar)), 1)


def on_arrays(kernel: Kernel) -> Kernel:
    """Return a kernel for arrays as one that also accepts constants."""

    def call(*values: Value) -> Value:
        if not any(isinstance(value, pa.Scalar) for value in values):
            return kernel(*values)
        records = rows_of(values)
        full = [pa.repeat(v, records) if isinstance(v, pa.Scalar) else v for v in values]
        result = kernel(*full)
        return result[0] if all(isinstance(item, pa.Scalar) for item in values) else result

    return call


def nothing_like(left: Value, right: Value) -> Value:
    """Return a null truth for each record."""
    longest = left if isinstance(right, pa.Scalar) else right
    if isinstance(longest, pa.Scalar):
        return pa.scalar(None, pa.bool_())
    return pa.nulls(len(longest), pa.bool_())


def nonzero(value: Value) -> Value:
    """Return numbers with null instead of 0."""
    return pc.if_else(pc.equal(value, pa.scalar(0).cast(value.type)),
                      pa.scalar(None, value.type), value)  # fmt: skip
