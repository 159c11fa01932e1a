"""Changed windows on their way from a node to the sink: tables of rows by form, as bytes."""

import json
import struct
from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from controlplane.wire.forms import Form, from_bytes, to_bytes
from controlplane.wire.forms import named as form_named

_HEAD: Final = struct.Struct("<I")


def pack(changes: Iterable[tuple[str, Form, Any]]) -> bytes:
    """Return tables of changed windows as bytes; tables without rows are left out."""
    parts = [(name, to_bytes(rows)) for name, _, rows in changes if len(rows)]
    head = json.dumps([[name, len(data)] for name, data in parts]).encode()
    return b"".join((_HEAD.pack(len(head)), head, *(data for _, data in parts)))


def unpacked(data: bytes) -> Iterator[tuple[str, Any]]:
    """Yield the name of the form and the rows of each table that `pack` wrote."""
    (size,) = _HEAD.unpack_from(data)
    at = _HEAD.size + size
    for name, length in json.loads(data[_HEAD.size : at]):
        yield name, from_bytes(form_named(name), data[at : at + length])
        at += length


def by_query(data: bytes) -> dict[int, dict[str, list[bytes]]]:
    """Return the changed windows of each query: the bytes of its rows, by form."""
    found: dict[int, dict[str, list[bytes]]] = {}
    for name, rows in unpacked(data):
        query = np.asarray(rows["query"])
        order = np.argsort(query, kind="stable")
        ordered = rows.take(pa.array(order)).combine_chunks()
        queries, starts = np.unique(query[order], return_index=True)
        ends = np.append(starts[1:], len(query))
        for one, start, end in zip(queries.tolist(), starts, ends, strict=True):
            mine = to_bytes(ordered.slice(start, end - start))
            found.setdefault(one, {}).setdefault(name, []).append(mine)
    return found
