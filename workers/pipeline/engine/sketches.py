"""Records to the cells of sketches; `controlplane/wire/sketches.py` says what cells are."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from controlplane.wire.sketches import APART, GAMMA, REGISTER_BITS, SMALLEST
from workers.pipeline.engine.arrow import pa
from workers.pipeline.engine.hashing import hashes_of
from workers.pipeline.engine.records import Int64s


def cells_of(sketch: str, values: Any) -> tuple[Any, Any, Int64s]:
    """Return cell, item and number for each value of an array without nulls.

    `cell` int64[n] or None, `item` a text array or None: what names the cell.
    """
    match sketch:
        case "quantile":
            return (
                buckets_of(np.asarray(values.cast(pa.float64()))),
                None,
                np.ones(len(values), np.int64),
            )
        case "count_distinct":
            register, rank = registers_of(hashes_of([values], len(values)))
            return register, None, rank
        case "top_k":
            ones = np.ones(len(values), np.int64)
            if pa.types.is_string(values.type):
                return None, values, ones
            return np.asarray(values.cast(pa.int64())), None, ones
    raise LookupError(f"there is no sketch {sketch}")


def keeps_largest(sketch: str) -> bool:
    """Return whether cells merge by their maximum instead of their sum."""
    return sketch == "count_distinct"


def buckets_of(values: NDArray[np.float64]) -> Int64s:
    """Return the bucket of each value; what is no number counts as 0."""
    size = np.abs(np.nan_to_num(values, nan=0.0))
    with np.errstate(divide="ignore"):
        bucket = np.ceil(np.log(np.maximum(size, SMALLEST)) / math.log(GAMMA)).astype(np.int64)
    signed = np.where(values < 0, -APART - bucket, APART + bucket)
    return np.where(size <= SMALLEST, 0, signed)


def registers_of(hashes: NDArray[np.uint64]) -> tuple[Int64s, Int64s]:
    """Return the register of each hash, and how many bits its rest has up to the first 1."""
    register = (hashes >> np.uint64(64 - REGISTER_BITS)).astype(np.int64)
    rest = hashes << np.uint64(REGISTER_BITS)
    # The exponent of the rest as a number: where its first 1 is.
    _, exponent = np.frexp((rest >> np.uint64(11)).astype(np.float64))
    first = np.where(rest == 0, 0, exponent + 11)
    rank = np.minimum(64 - first + 1, 64 - REGISTER_BITS + 1)
    return register, rank.astype(np.int64)
