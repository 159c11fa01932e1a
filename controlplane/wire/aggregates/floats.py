"""Floats as whole numbers of the same order, in which NaN is the greatest and -0.0 equals 0.0."""

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_MAGNITUDE: Final = np.int64(2**63 - 1)


def float_codes(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return one int64 per float: a < b exactly if the code of a is less than that of b."""
    # Adding 0.0 makes the zeros one; every NaN gets the bits of the same.
    plain = np.where(np.isnan(values), np.nan, values + 0.0)
    bits: NDArray[np.int64] = plain.view(np.int64)
    return bits ^ ((bits >> 63) & _MAGNITUDE)


def decode_floats(codes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the floats of these codes."""
    bits = codes ^ ((codes >> 63) & _MAGNITUDE)
    return bits.view(np.float64)


def decode_float(code: int) -> float:
    """Return the float of one code; NaN is always the same object."""
    result = float(decode_floats(np.array([code], np.int64))[0])
    return math.nan if math.isnan(result) else result


def plain_float(value: Any) -> Any:
    """Return a float such that equal ones are equal keys of a dictionary; others as they are."""
    if not isinstance(value, float):
        return value
    return math.nan if math.isnan(value) else value + 0.0
