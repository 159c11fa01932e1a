"""Encoding of tables of changed windows as bytes, with the names of their state schemas."""

import json
import struct
from collections.abc import Iterable, Iterator
from typing import Any, Final

from controlplane.wire.aggregates.state_schema import (
    StateSchema,
    from_bytes,
    schema_named,
    to_bytes,
)

_HEAD: Final = struct.Struct("<I")


def pack(changes: Iterable[tuple[str, StateSchema, Any]]) -> bytes:
    """Return tables of changed windows as bytes, without empty tables."""
    parts = [(name, to_bytes(rows)) for name, _, rows in changes if len(rows)]
    head = json.dumps([[name, len(data)] for name, data in parts]).encode()
    return b"".join((_HEAD.pack(len(head)), head, *(data for _, data in parts)))


def unpacked(data: bytes) -> Iterator[tuple[str, Any]]:
    """Yield the name of the state schema and the rows of each table that `pack` wrote."""
    (size,) = _HEAD.unpack_from(data)
    offset = _HEAD.size + size
    for name, length in json.loads(data[_HEAD.size : offset]):
        yield name, from_bytes(schema_named(name), data[offset : offset + length])
        offset += length
