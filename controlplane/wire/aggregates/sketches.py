"""Sketches: quantiles, distinct values and most frequent values from cells.

A cell is a number of a key and window, named by a whole number `c` (or a text). Cells merge in any
order, so a sketch depends neither on the order of records nor on how they were cut into batches.
With few different values the cells are exact: `c` is the value or its hash. With many they are
coarse: a bucket of values, or a register of hashes, both derived from an exact cell.

`largest` is the kind of cell: None for the most frequent values, `QUANTILE` for quantiles,
`HASH` for the exact cells of distinct values, the rank for their registers.
"""

import math
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from controlplane.wire.language.tree import Kind

_MAGNITUDE: Final = np.int64(2**63 - 1)
QUANTILE: Final = -1
HASH: Final = 0

# Quantiles: values within a bucket differ by this factor, so the middle is within 1 % (DDSketch,
# Masson et al., VLDB 2019). What is closer to 0 than `SMALLEST` counts as 0.
ACCURACY: Final = 0.01
GAMMA: Final = (1 + ACCURACY) / (1 - ACCURACY)
SMALLEST: Final = 1e-300
# Separates the buckets of negative and of positive numbers; 0 has its own.
APART: Final = 1 << 20
_INFINITE: Final = 1 << 21
_NAN: Final = _INFINITE + 1
# The codes of all floats but 0 are further from 0 than any bucket.
_BUCKETS: Final = 1 << 22

# Distinct values: 2 ** 12 registers, off by 1.04 / sqrt(4096) = 1.6 % (HyperLogLog, Flajolet et
# al., 2007).
REGISTER_BITS: Final = 12
REGISTERS: Final = 1 << REGISTER_BITS

Int64s = NDArray[np.int64]


def float_codes(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return one int64 per float: a < b exactly if the code of a is less than that of b.

    NaN is the greatest and -0.0 equals 0.0.
    """
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


class SketchCell(NamedTuple):
    """One cell: its number or text, and its count or rank."""

    name: Any
    number: int


def is_exact(largest: Int64s, cell: Int64s) -> NDArray[np.bool_]:
    """Return which cells are exact, of quantiles or distinct values."""
    plain = np.abs(cell) >= _BUCKETS
    return np.asarray((largest == HASH) | ((largest == QUANTILE) & (plain | (cell == 0))))


def is_coarse(largest: Int64s, cell: Int64s) -> NDArray[np.bool_]:
    """Return which cells are coarse: buckets of quantiles, registers of distinct values."""
    bucket = (np.abs(cell) < _BUCKETS) & (cell != 0)
    return np.asarray((largest > HASH) | ((largest == QUANTILE) & bucket))


def coarse_cells(largest: Int64s, cell: Int64s) -> tuple[Int64s, Int64s]:
    """Return the coarse cell of each exact one, and what `largest` is of it."""
    coarse, numbers = cell.copy(), largest.copy()
    values = largest == QUANTILE
    coarse[values] = buckets_of(decode_floats(cell[values]))
    register, rank = registers_of(cell[~values].view(np.uint64))
    coarse[~values], numbers[~values] = -1 - register, rank
    return coarse, numbers


def hash_cells(hashes: NDArray[np.uint64]) -> Int64s:
    """Return the exact cell of each hash; no cell is the number of a register."""
    cells = hashes.view(np.int64)
    taken = (cells < 0) & (cells >= -REGISTERS)
    return np.where(taken, cells ^ np.int64(1 << 62), cells)


def value_cells(values: NDArray[np.float64]) -> Int64s:
    """Return the exact cell of each number."""
    return float_codes(np.where(np.abs(values) <= SMALLEST, 0.0, values))


def buckets_of(values: NDArray[np.float64]) -> Int64s:
    """Return the bucket of each value; buckets are in the order of their values."""
    size = np.abs(values)
    finite = np.where(np.isfinite(values) & (size > SMALLEST), size, 1.0)
    bucket = APART + np.ceil(np.log(finite) / math.log(GAMMA)).astype(np.int64)
    bucket = np.where(np.isinf(values), _INFINITE, np.where(size <= SMALLEST, 0, bucket))
    return np.where(np.isnan(values), _NAN, np.where(values < 0, -bucket, bucket))


def registers_of(hashes: NDArray[np.uint64]) -> tuple[Int64s, Int64s]:
    """Return the register of each hash, and how many bits its rest has up to the first 1."""
    register = (hashes >> np.uint64(64 - REGISTER_BITS)).astype(np.int64)
    rest = hashes << np.uint64(REGISTER_BITS)
    # The exponent of the rest as a number: where its first 1 is.
    _, exponent = np.frexp((rest >> np.uint64(11)).astype(np.float64))
    first = np.where(rest == 0, 0, exponent + 11)
    rank = np.minimum(64 - first + 1, 64 - REGISTER_BITS + 1)
    return register, rank.astype(np.int64)


def value_of_bucket(bucket: int) -> float:
    """Return the representative value of a bucket."""
    size = abs(bucket)
    if size == 0:
        return 0.0
    if size >= _INFINITE:
        return math.nan if bucket == _NAN else math.copysign(math.inf, bucket)
    # The last bucket begins below the largest float and ends above it.
    exponent = (size - APART) * math.log(GAMMA) + math.log(2 / (1 + GAMMA))
    middle = math.exp(min(exponent, math.log(np.finfo(np.float64).max)))
    return math.copysign(middle, bucket)


def quantile(cells: Iterable[SketchCell], share: float) -> float | None:
    """Return the value of rank `floor(share * (n - 1))`, counted from 0; None without any."""
    ordered = sorted(cells)
    total = sum(cell.number for cell in ordered)
    if not total:
        return None
    wanted, passed = math.floor(share * (total - 1)), 0
    for cell in ordered:
        passed += cell.number
        if passed > wanted:
            break
    return value_of_bucket(cell.name) if abs(cell.name) < _BUCKETS else decode_float(cell.name)


def distinct(cells: Sequence[SketchCell]) -> int:
    """Return how many different values there were: exact cells, or ranks of registers."""
    if not cells or cells[0].number == HASH:
        return len(cells)
    counts = np.bincount([cell.number for cell in cells], minlength=66 - REGISTER_BITS)
    counts[0] = REGISTERS - len(cells)
    return round(_estimate(counts.tolist()))


def _estimate(counts: Sequence[int]) -> float:
    """Return the estimate from how many registers have each rank.

    Ertl, New cardinality estimation algorithms for HyperLogLog sketches, 2017, algorithm 6: without
    a bias at any number of values.
    """
    *middle, last = counts[1:]
    total = REGISTERS * _tau(1 - last / REGISTERS)
    for count in reversed(middle):
        total = 0.5 * (total + count)
    total += REGISTERS * _sigma(counts[0] / REGISTERS)
    return REGISTERS * REGISTERS / (2 * math.log(2) * total) if math.isfinite(total) else 0.0


def _sigma(share: float) -> float:
    if share == 1.0:
        return math.inf
    factor, total = 1.0, share
    while True:
        share *= share
        before = total
        total += share * factor
        factor += factor
        if total == before:
            return total


def _tau(share: float) -> float:
    if share in (0.0, 1.0):
        return 0.0
    factor, total = 1.0, 1 - share
    while True:
        share = math.sqrt(share)
        before = total
        factor *= 0.5
        total -= (1 - share) ** 2 * factor
        if total == before:
            return total / 3


def top(cells: Iterable[SketchCell], k: int, kind: Kind = Kind.INT) -> list[tuple[Any, int]]:
    """Return the k most frequent values with their counts, the smaller value first of equals."""
    by_value = [
        (-number, Decimal(name) if kind is Kind.DECIMAL else name) for name, number in cells
    ]
    return [(_value_of(name, kind), -number) for number, name in sorted(by_value)[:k]]


def _value_of(name: Any, kind: Kind) -> Any:
    """Return the value of a cell of the most frequent ones; times are milliseconds."""
    match kind:
        case Kind.FLOAT:
            return decode_float(name)
        case Kind.BOOL:
            return bool(name)
        case Kind.DATE:
            return date_of(name)
    return name


def date_of(days: int) -> date | str:
    """Return the date so many days after 1970-01-01.

    Beyond the years 1 to 9999, which Python does not have, it is ISO 8601 text.
    """
    try:
        return date(1970, 1, 1) + timedelta(days)
    except OverflowError:
        return str(np.datetime64(days, "D"))


def finalize_sketch(sketch: str, cells: Sequence[SketchCell], setting: float, kind: Kind) -> Any:
    """Return the value of a sketch. Raises `LookupError` for an unknown sketch."""
    match sketch:
        case "quantile":
            return quantile(cells, setting)
        case "count_distinct":
            return distinct(cells)
        case "top_k":
            return top(cells, int(setting), kind)
    raise LookupError(f"there is no sketch {sketch}")
