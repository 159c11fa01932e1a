"""Hashes of keys: the same in every process, so that a record always finds its task.

Equal values of a kind have equal hashes: -0.0 that of 0.0, every NaN one.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from workers.pipeline.engine.arrow import pa

Hashes = NDArray[np.uint64]

_NULL: Final = np.uint64(0x9E3779B97F4A7C15)
_MULTIPLIER: Final = np.uint64(0xBF58476D1CE4E5B9)


def hashes_of(columns: Sequence[Any], records: int) -> Hashes:
    """Return the hash of each record's values in these Arrow arrays; one constant for none."""
    found = np.zeros(records, np.uint64)
    with np.errstate(over="ignore"):
        for column in columns:
            found = _mixed(found * _MULTIPLIER + _hashes(column))
    return found


def _hashes(column: Any) -> Hashes:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_string(column.type):
        return _of_texts(column)
    found = _of_decimals(column) if pa.types.is_decimal(column.type) else _hashed(_numbers(column))
    return np.where(np.asarray(column.is_null()), _NULL, found) if column.null_count else found


def _numbers(column: Any) -> Any:
    """Return floats with one zero and one NaN, and everything else as whole numbers."""
    if pa.types.is_floating(column.type):
        plain = np.asarray(column.fill_null(0.0)) + 0.0
        return np.where(np.isnan(plain), np.nan, plain)
    if pa.types.is_date(column.type):
        column = column.cast(pa.int32())
    return np.asarray(column.cast(pa.int64()).fill_null(0))


def _of_decimals(column: Any) -> Hashes:
    """Hash both halves of the 128 bits."""
    words = np.frombuffer(column.buffers()[1], np.int64)
    pairs = words[2 * column.offset : 2 * (column.offset + len(column))].reshape(-1, 2)
    low, high = (_hashed(np.ascontiguousarray(pairs[:, half])) for half in (0, 1))
    return _mixed(low * _MULTIPLIER + high)


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
    found: Hashes = np.append(known, _NULL)[places]
    return found


def _mixed(values: Hashes) -> Hashes:
    """Spread what differs in any bit over all bits (the finaliser of MurmurHash3)."""
    values = (values ^ (values >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    values = (values ^ (values >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return np.asarray(values ^ (values >> np.uint64(33)))
