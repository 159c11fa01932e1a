"""Hashes of keys: the same in every process, so that a record always finds its task.

Equal values have equal hashes: -0.0 that of 0.0, every NaN one, and a number the same as whole
number, decimal and float, so that hashes outlive a column that becomes wider. Whole numbers within
64 bits are hashed as such, other decimals as their float where no other decimal has the same.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from workers.pipeline.engine.arrow import pa, pc

Hashes = NDArray[np.uint64]
Int64s = NDArray[np.int64]

_NULL: Final = np.uint64(0x9E3779B97F4A7C15)
_MULTIPLIER: Final = np.uint64(0xBF58476D1CE4E5B9)
_INT64_END: Final = 2**63
# Digits of decimals behind the point, and units of them that numpy computes with.
_PLACES: Final = 9
_PER_ONE: Final = 10**_PLACES
_MOST_UNITS: Final = 2**62
# Every decimal of so many digits is the only one of its float.
_FLOAT_DIGITS: Final = 15


def hash_rows(columns: Sequence[Any], records: int) -> Hashes:
    """Return the hash of each record's values in these Arrow arrays; one constant for none."""
    result = np.zeros(records, np.uint64)
    with np.errstate(over="ignore"):
        for column in columns:
            result = mix_bits(result * _MULTIPLIER + _hashes(column))
    return result


def _hashes(column: Any) -> Hashes:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_string(column.type):
        return _of_texts(column)
    if pa.types.is_decimal(column.type):
        result = _of_decimals(column)
    elif pa.types.is_floating(column.type):
        result = _of_floats(np.asarray(column.fill_null(0.0)))
    else:
        result = _hashed(_whole_numbers(column))
    return np.where(np.asarray(column.is_null()), _NULL, result) if column.null_count else result


def _whole_numbers(column: Any) -> Any:
    if pa.types.is_date(column.type):
        column = column.cast(pa.int32())
    return np.asarray(column.cast(pa.int64()).fill_null(0))


def _of_floats(values: NDArray[np.float64]) -> Hashes:
    """Hash floats, with one zero and one NaN."""
    plain = np.where(np.isnan(values), np.nan, values + 0.0)
    result = _hashed(plain)
    whole = (np.floor(plain) == plain) & (plain >= -_INT64_END) & (plain < _INT64_END)
    if whole.any():
        result[whole] = _hashed(plain[whole].astype(np.int64))
    return result


def _of_decimals(column: Any) -> Hashes:
    """Hash decimals; those with too many digits for a float by both halves of 128 bits."""
    low, high = _words(column)
    result = mix_bits(_hashed(low) * _MULTIPLIER + _hashed(high))
    small = (high == low >> 63) & (np.abs(low) <= _MOST_UNITS)
    rows = np.flatnonzero(small)
    _hash_as_others(result, rows, high[rows] < 0, *np.divmod(np.abs(low[rows]), _PER_ONE))
    rows = np.flatnonzero(~small & np.asarray(column.is_valid()))
    if len(rows):
        rows, whole, rest = _parts(column, rows)
        _hash_as_others(result, rows, high[rows] < 0, whole, rest)
    return result


def _words(column: Any) -> tuple[Int64s, Int64s]:
    """Return the lower and the upper half of decimals of 128 bits, in units of 1e-9."""
    words = np.frombuffer(column.buffers()[1], np.int64)
    pairs = words[2 * column.offset : 2 * (column.offset + len(column))].reshape(-1, 2)
    return np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])


def _parts(column: Any, rows: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """Return the rows whose whole digits fit 64 bits, these digits, and those after the point."""
    size = pc.abs(column.take(pa.array(rows)))
    whole = pc.trunc(size)
    fits = pc.less(whole, pa.scalar(Decimal(_INT64_END), column.type))
    size, whole = size.filter(fits), whole.filter(fits)
    rest = pc.subtract(*(item.cast(pa.decimal256(50, 9)) for item in (size, whole)))
    rest, _ = _words(rest.cast(pa.decimal128(38, 9)))
    return rows[np.asarray(fits)], np.asarray(whole.cast(pa.int64())), rest


def _hash_as_others(
    hashes: Hashes, rows: Int64s, negative: NDArray[np.bool_], whole: Int64s, rest: Int64s
) -> None:
    """Hash decimals in place as whole numbers, or as floats that hold all of their digits.

    `whole`: the digits before the point, `rest` the nine behind it, as numbers.
    """
    sign = np.where(negative, -1, 1)
    integral = rest == 0
    hashes[rows[integral]] = _hashed((sign * whole)[integral])
    zeros = sum((rest % 10**count == 0).astype(np.int64) for count in range(1, _PLACES))
    places = _PLACES - zeros
    # Below 2 ** 23 floats are closer to each other than decimals.
    fractional = ~integral & ((whole < 1 << 23) | (whole < 10 ** (_FLOAT_DIGITS - places)))
    units = (
        whole[fractional] * 10 ** places[fractional] + rest[fractional] // 10 ** zeros[fractional]
    )
    hashes[rows[fractional]] = _hashed(sign[fractional] * (units / 10.0 ** places[fractional]))


def _hashed(values: Any) -> Hashes:
    # Half of the processes that know this module hash nothing: 46 MB less for each of them.
    from pandas.util import hash_array  # noqa: PLC0415

    return np.asarray(hash_array(values, categorize=False)).astype(np.uint64)


def _of_texts(column: Any) -> Hashes:
    """Hash each different text once."""
    encoded = column.dictionary_encode()
    texts = np.asarray(encoded.dictionary.to_pylist(), object)
    known = _hashed(texts)
    places = np.asarray(encoded.indices.fill_null(len(known)))
    result: Hashes = np.append(known, _NULL)[places]
    return result


def mix_bits(values: Hashes) -> Hashes:
    """Spread what differs in any bit over all bits (the finaliser of MurmurHash3)."""
    values = (values ^ (values >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    values = (values ^ (values >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return np.asarray(values ^ (values >> np.uint64(33)))
