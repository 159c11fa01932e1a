"""Blocks of complete windows on their way from a node to the sink.

A block is cut into pieces of `BLOCK_BYTES`, each with whole windows, and written in the state
schema in which it is stored; several of them make up a row of the node's output.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from controlplane.wire.aggregates.state_schema import StateSchema
from controlplane.wire.results.blocks import BLOCK_BYTES, Block, encoded, extent_of
from controlplane.wire.results.rows import key_columns
from workers.pipeline.engine.hashing import hash_rows

# First and last start, rows of slots, how many recipients, bytes of the block.
_HEAD: Final = struct.Struct("<qqIIQ")
# Keys of one start are cut by this many bits of their hashes.
_BITS: Final = 6

Tables = Sequence[tuple[str, StateSchema, Any]]


@dataclass(frozen=True, slots=True)
class ReceivedBlock:
    """A block as the sink reads it; `recipients`: query and incarnation of each of its queries."""

    first_ms: int
    last_ms: int
    windows: int
    recipients: Sequence[tuple[int, int]]
    data: bytes


def pack_blocks(blocks: Iterable[Block], limit: int) -> Iterator[bytes]:
    """Yield rows of about `limit` bytes at most, with some blocks each."""
    row: list[bytes] = []
    size = 0
    for block in blocks:
        for tables in split_tables(block.tables, BLOCK_BYTES):
            data = _packed(block.recipients, tables)
            if row and size + len(data) > limit:
                yield b"".join(row)
                row, size = [], 0
            row.append(data)
            size += len(data)
    if row:
        yield b"".join(row)


def _packed(recipients: Sequence[tuple[int, int]], tables: Tables) -> bytes:
    data = encoded(tables)
    pairs = np.array(recipients, np.int64).tobytes()
    return _HEAD.pack(*extent_of(tables), len(recipients), len(data)) + pairs + data


def unpack_blocks(payload: bytes) -> Iterator[ReceivedBlock]:
    """Yield the blocks of a row."""
    offset = 0
    while offset < len(payload):
        first, last, windows, count, size = _HEAD.unpack_from(payload, offset)
        offset += _HEAD.size
        pairs = np.frombuffer(payload, np.int64, 2 * count, offset).reshape(-1, 2)
        offset += pairs.nbytes
        recipients = [(query, incarnation) for query, incarnation in pairs.tolist()]
        yield ReceivedBlock(first, last, windows, recipients, payload[offset : offset + size])
        offset += size


def split_tables(tables: Tables, limit: int) -> Iterator[Tables]:
    """Yield tables in pieces of about `limit` bytes, no window in two of them."""
    if sum(rows.nbytes for _, _, rows in tables) <= limit:
        yield [(name, form, rows.combine_chunks()) for name, form, rows in tables]
        return
    starts = np.unique(np.concatenate([np.asarray(rows["pane"]) for _, _, rows in tables]))
    places = [_places(form, rows, starts) for _, form, rows in tables]
    weights = np.zeros(len(starts) << _BITS)
    for (_, _, rows), place in zip(tables, places, strict=True):
        weights += np.bincount(place, minlength=len(weights)) * (rows.nbytes / max(1, len(rows)))
    piece_of = ((np.cumsum(weights) - weights) // limit).astype(np.int64)
    for piece in np.unique(piece_of[weights > 0]).tolist():
        yield [
            (name, form, rows.filter(pa.array(selected)).combine_chunks())
            for (name, form, rows), place in zip(tables, places, strict=True)
            if (selected := piece_of[place] == piece).any()
        ]


def _places(form: StateSchema, rows: Any, starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a number for the start and the key of each row, int64[rows]."""
    start = np.searchsorted(starts, np.asarray(rows["pane"])) << _BITS
    names = key_columns(form)
    if not names:
        return start
    hashes = hash_rows([rows[name] for name in names], len(rows))
    return np.asarray(start | (hashes >> np.uint64(64 - _BITS)).astype(np.int64))
