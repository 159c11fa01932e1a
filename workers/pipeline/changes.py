"""Changed windows on their way from a node to the sink: tables of rows by form, as bytes."""

import json
import struct
from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from controlplane.wire.forms import Form, from_bytes, to_bytes
from controlplane.wire.forms import named as form_named
from controlplane.wire.results import Changes

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


def changes_of(data: bytes) -> Changes:
    """Return the changed windows that `pack` wrote."""
    return Changes(list(unpacked(data)))


def by_query(changes: Changes, wanted: Collection[int]) -> dict[int, dict[str, list[bytes]]]:
    """Return the changed windows of each wanted query: the bytes of its rows, by form."""
    found: dict[int, dict[str, list[bytes]]] = {}
    for name, rows in changes.tables:
        query = np.asarray(rows["query"])
        for one in sorted({*np.unique(query).tolist()}.intersection(wanted)):
            mine = to_bytes(rows.filter(pa.array(query == one)))
            found.setdefault(one, {}).setdefault(name, []).append(mine)
    return found


def without(changes: Changes, queries: Collection[int]) -> Changes:
    """Return the changed windows of all other queries."""
    if not queries:
        return changes
    gone = np.array(sorted(queries))
    return Changes(
        [
            (name, rows.filter(pa.array(~np.isin(np.asarray(rows["query"]), gone))))
            for name, rows in changes.tables
        ]
    )
