"""Members: the order of a query's windows as bytes.

A member is `start ‖ key ‖ part`. `start ‖ key` is the *place* of a window of one key; compared as
bytes, places are in the order of starts, then of keys. No key's encoding is a prefix of another
key's, so all parts of a place are adjacent.
"""

import hashlib
import struct
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_START: Final = struct.Struct(">Q")
_SIGN: Final = 1 << 63
# run and task (4 bytes each), stream (8 bytes).
PART_BYTES: Final = 16
START_BYTES: Final = 8
# Longer keys are replaced by their hash, so that members stay small.
MAX_KEY_BYTES: Final = 256
_NULL, _VALUE, _HASHED = b"\x00", b"\x01", b"\x02"
Bytes2D = NDArray[np.uint8]


def start_bytes(start_ms: int) -> bytes:
    """Return the start of a window as 8 bytes in the order of the starts."""
    return _START.pack(start_ms + _SIGN)


def start_of(place: bytes) -> int:
    """Return the start (ms) of the window at a place, or of a member."""
    (number,) = _START.unpack_from(place)
    return int(number) - _SIGN


def place_of(member: bytes) -> bytes:
    """Return the place of a member: start and key, without the part."""
    return member[:-PART_BYTES]


def members_of(table: Any, keys: Sequence[str]) -> list[bytes]:
    """Return the member of each row of a table with the columns of a state schema.

    `keys`: the names of its key columns.
    """
    starts = _big_endian(np.asarray(table["pane"]))
    part = [_big_endian(np.asarray(table[name]), size) for name, size in _PART]
    columns = [whole_column(table[name]) for name in keys]
    if all(_is_fixed(column.type) for column in columns):
        matrix = np.concatenate([starts, *(_fixed_key(item) for item in columns), *part], axis=1)
        return split(matrix)
    encoded = zip(*(_key_bytes(column) for column in columns), strict=True)
    places = zip(split(starts), map(b"".join, encoded), split(np.concatenate(part, axis=1)),
                 strict=True)  # fmt: skip
    return [b"".join(place) for place in places]


_PART: Final = (("run", 4), ("task", 4), ("stream", 8))


def key_bytes(values: Sequence[Any], types: Sequence[Any]) -> bytes:
    """Return the encoding of one key from its values and their Arrow types."""
    columns = [pa.array([value], kind) for value, kind in zip(values, types, strict=True)]
    return b"".join(_key_bytes(column)[0] for column in columns)


def _big_endian(values: NDArray[np.int64], size: int = 8) -> Bytes2D:
    """Return int64s as rows of big-endian bytes, in order where they are as long as the number."""
    flipped = (values.astype(np.int64).view(np.uint64) ^ np.uint64(_SIGN)) if size == 8 else values  # noqa: PLR2004 - bytes of an int64
    rows = flipped.astype(">u8").view(np.uint8).reshape(-1, 8)
    return rows[:, 8 - size :]


def split(matrix: Bytes2D) -> list[bytes]:
    """Return the rows of a matrix, each as bytes."""
    data, width = np.ascontiguousarray(matrix).tobytes(), matrix.shape[1]
    return [data[index : index + width] for index in range(0, len(data), width)]


def whole_column(column: Any) -> Any:
    """Return a column in one chunk."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _is_fixed(kind: Any) -> bool:
    # A boolean is a bit in Arrow, a byte here.
    return pa.types.is_null(kind) or pa.types.is_primitive(kind) or pa.types.is_decimal(kind)


def _key_bytes(column: Any) -> list[bytes]:
    """Return the encoding of each value of one key column."""
    if _is_fixed(column.type):
        return split(_fixed_key(column))
    known = column.dictionary_encode()
    words = [_word(value) for value in known.dictionary.to_pylist()]
    return [_NULL if index is None else words[index] for index in known.indices.to_pylist()]


def _word(value: Any) -> bytes:
    """Return the encoding of a value of any length: its bytes with a terminator."""
    data = value.encode() if isinstance(value, str) else value
    if not isinstance(data, bytes):
        data = repr(value).encode()
    if len(data) > MAX_KEY_BYTES:
        kept = data[: MAX_KEY_BYTES - 64] + hashlib.sha256(data).digest()
        return _HASHED + kept
    return _VALUE + data.replace(b"\x00", b"\x00\xff") + b"\x00\x00"


def _fixed_key(column: Any) -> Bytes2D:
    """Return a validity byte and the value in byte order."""
    valid = np.asarray(column.is_valid()).astype(np.uint8).reshape(-1, 1)
    if pa.types.is_null(column.type):
        return valid
    data = _ordered(column)
    data[valid[:, 0] == 0] = 0
    return np.concatenate([valid, data], axis=1)


def _ordered(column: Any) -> Bytes2D:
    raw = raw_bytes(column)[:, ::-1].copy()
    if pa.types.is_floating(column.type):
        # IEEE numbers in the order of their bytes: negative ones inverted.
        negative = raw[:, 0] >= 0x80  # noqa: PLR2004 - the bit of the sign
        raw[negative] ^= 0xFF
        raw[~negative, 0] ^= 0x80
    elif not (pa.types.is_unsigned_integer(column.type) or pa.types.is_boolean(column.type)):
        raw[:, 0] ^= 0x80
    return raw


def raw_bytes(column: Any) -> Bytes2D:
    """Return the values of a column of fixed width as Arrow has them, one row of bytes each."""
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    width = column.type.bit_width // 8
    buffer = column.buffers()[1]
    if buffer is None:
        return np.zeros((len(column), width), np.uint8)
    first = column.offset * width
    flat = np.frombuffer(buffer, np.uint8)[first : first + len(column) * width]
    return flat.reshape(-1, width)
