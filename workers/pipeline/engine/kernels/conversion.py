"""Casts, and the hash of a value."""

from typing import Final

import numpy as np

from workers.pipeline.engine.arrow import pa, pc
from workers.pipeline.engine.hashing import hash_rows
from workers.pipeline.engine.kernels.rounding import to_whole
from workers.pipeline.engine.kernels.types import (
    DECIMAL,
    FLOAT,
    INT,
    Kernel,
    Value,
    as_float,
    is_decimal,
    is_float,
    on_arrays,
    plain_zeros,
)

_TIME: Final = pa.timestamp("ms", tz="UTC")
_DAY_MS: Final = 86_400_000


def _to_decimal(value: Value) -> Value:
    if is_float(value):
        value = pc.if_else(pc.is_nan(value), pa.scalar(None, FLOAT), value)
    elif pa.types.is_boolean(value.type):
        value = value.cast(INT)
    return value.cast(DECIMAL)


def _to_text(value: Value) -> Value:
    if is_decimal(value):
        return _decimal_text(value)
    result = plain_zeros(value).cast(pa.string())
    if not is_float(value):
        return result
    for shown, wanted in (("nan", "NaN"), ("-nan", "NaN"), ("inf", "Infinity"),
                          ("-inf", "-Infinity")):  # fmt: skip
        result = pc.if_else(pc.equal(result, shown), wanted, result)
    return result


@on_arrays
def _decimal_text(value: Value) -> Value:
    """Return decimals without zeros at their end: 1.5, 100, 0.000000003."""
    result = value.cast(pa.string())
    exponent = pc.match_substring(result, "E")
    if pc.any(exponent).as_py():
        plain = [None if item is None else f"{item:f}" for item in value.to_pylist()]
        result = pa.array(plain, pa.string())
    return pc.utf8_rtrim(pc.utf8_rtrim(result, "0"), ".")


def _to_date(value: Value) -> Value:
    return _days(value) if pa.types.is_timestamp(value.type) else value.cast(pa.date32())


@on_arrays
def _days(value: Value) -> Value:
    ms = value.cast(INT)
    days = np.asarray(ms.fill_null(0)) // _DAY_MS
    if len(days) and np.abs(days).max() >= 2**31:
        raise pa.ArrowInvalid("overflow")
    return pa.array(days.astype(np.int32), pa.date32(), mask=np.asarray(ms.is_null()))


@on_arrays
def _hashed(value: Value) -> Value:
    """Return a 64-bit hash that is the same in every process and version."""
    hashes = hash_rows([value], len(value)).view(np.int64)
    return pa.array(hashes, mask=np.asarray(value.is_null()))


CONVERSIONS: Final[dict[str, Kernel]] = {
    "to int": to_whole(pc.trunc),
    "to float": as_float,
    "to decimal": _to_decimal,
    "to text": _to_text,
    "to time": lambda value: value.cast(_TIME),
    "to date": _to_date,
    "hash": _hashed,
}
