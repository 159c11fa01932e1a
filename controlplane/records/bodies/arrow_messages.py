"""What the messages of an Arrow IPC stream declare, read before anything is unpacked.

The metadata of a message is a flatbuffer (format/Message.fbs of Arrow); a buffer of a compressed
batch begins with its unpacked length. Arrow itself does not show either.
"""

import struct
from typing import Any, Final

import pyarrow as pa

from controlplane.errors import BadBody

_END: Final = b"\xff\xff\xff\xff\0\0\0\0"
_RECORDS, _DICTIONARY = "record batch", "dictionary"
# Fields of the tables Message, DictionaryBatch and RecordBatch by number.
_HEADER, _DATA, _LENGTH, _NODES, _BUFFERS, _COMPRESSION = 2, 1, 0, 1, 2, 3
_PAIR: Final = struct.Struct("<qq")


def declared_sizes(body: bytes) -> tuple[int, int]:
    """Return how many records, and how many bytes, an IPC stream unpacks to.

    Raises `BadBody` if it has no end or goes on after it, and `pa.ArrowException`.
    """
    source = pa.BufferReader(body)
    records = size = 0
    for message in pa.ipc.MessageReader.open_stream(source):
        if message.type not in (_RECORDS, _DICTIONARY):
            continue
        metadata = bytes(message.metadata)
        batch = _table(metadata, _table(metadata, 0)[_HEADER])
        if message.type == _DICTIONARY:
            batch = _table(metadata, batch[_DATA])
        elif _LENGTH in batch:
            records += _number(metadata, "<q", batch[_LENGTH])
        size += _unpacked(metadata, batch, message.body)
    end = source.tell()
    if not body[:end].endswith(_END):
        raise BadBody(
            "The body is not a whole Arrow IPC stream: it ends without the end of a stream"
        )
    if end < len(body):
        raise BadBody(f"The body has {len(body) - end:,} bytes after the end of its Arrow stream")
    return records, size


def _unpacked(metadata: bytes, batch: dict[int, int], body: Any) -> int:
    """Return the bytes of a batch when all of its buffers are unpacked."""
    # Nulls, empty structs and binaries of no bytes have no buffer: each value counts as a byte.
    size = sum(length for length, _ in _pairs(metadata, batch, _NODES))
    for offset, length in _pairs(metadata, batch, _BUFFERS):
        packed = length > 0 and _COMPRESSION in batch
        unpacked = _number(bytes(body[offset : offset + 8]), "<q", 0) if packed else length
        # -1: the buffer is not compressed although others are.
        size += max(unpacked, length if unpacked == -1 else 0)
    return size


def _pairs(metadata: bytes, batch: dict[int, int], field: int) -> list[tuple[int, ...]]:
    """Return the pairs of numbers of a field: lengths and nulls of arrays, or places of buffers."""
    if field not in batch:
        return []
    begin = _place(metadata, batch[field])
    count = _number(metadata, "<I", begin)
    return list(_PAIR.iter_unpack(metadata[begin + 4 : begin + 4 + count * _PAIR.size]))


def _table(data: bytes, pointer: int) -> dict[int, int]:
    """Return the places of the fields of a flatbuffer's table by their number."""
    place = _place(data, pointer)
    layout = place - _number(data, "<i", place)
    count = (_number(data, "<H", layout) - 4) // 2
    offsets = struct.unpack_from(f"<{max(count, 0)}H", data, layout + 4)
    return {number: place + offset for number, offset in enumerate(offsets) if offset}


def _place(data: bytes, pointer: int) -> int:
    return pointer + _number(data, "<I", pointer)


def _number(data: bytes, form: str, place: int) -> int:
    number: int = struct.unpack_from(form, data, place)[0]
    return number
