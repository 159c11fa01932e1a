"""Routing: the entries a split node has read, put into one envelope per node."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from controlplane.wire.blocks import decode_block
from controlplane.wire.log import Entry
from workers.pipeline.engine.hashing import hashes_of
from workers.pipeline.engine.records import evaluator_of
from workers.pipeline.envelope import EMPTY, Envelope
from workers.pipeline.tables import CompiledTable, Readers

# The node whose envelope also carries what the split node reports; node 0 always exists.
REPORTING_NODE: Final = 0


class Part(NamedTuple):
    """The records of one block that one node needs."""

    stream: int
    entry: Entry
    records: pa.RecordBatch


def route(
    entries: Mapping[int, Sequence[Entry]],
    table: CompiledTable,
    slots: int,
    source: Mapping[str, Any],
) -> list[Envelope]:
    """Return one envelope for each node 0..slots-1; a node without records gets an empty one.

    `source` is what the split node reports; it travels in the reporting node's envelope.

    A record goes once to every node that needs it, whatever number of queries there read it
    (paper 000, section 2: "a stream is delivered at most once per server"). A node that has only
    some tasks of a query gets the records of their keys, and of every block its event times.
    """
    wanted: list[list[Part]] = [[] for _ in range(slots)]
    for stream, read in entries.items():
        readers = table.readers_of_stream.get(stream)
        if readers is None:
            continue
        for entry in read:
            block = decode_block(entry.block)
            for node, records in _by_node(stream, block, readers).items():
                wanted[node].append(Part(stream, entry, records))
    return [
        _envelope(parts, source if node == REPORTING_NODE else {})
        for node, parts in enumerate(wanted)
    ]


def _by_node(stream: int, block: pa.RecordBatch, readers: Readers) -> dict[int, pa.RecordBatch]:
    """Return the records of a block that each node needs."""
    found = dict.fromkeys(readers.whole, block)
    if not readers.keyed:
        return found
    mine: dict[int, NDArray[np.bool_]] = {}
    evaluator = evaluator_of(stream, block)
    for key, owners in readers.keyed:
        hashes = hashes_of([evaluator.array(one) for one in key], block.num_rows)
        node_of = np.array(owners)[(hashes % np.uint64(len(owners))).astype(np.int64)]
        for node in set(owners) - set(readers.whole):
            mine[node] = mine.get(node, False) | (node_of == node)
    return found | {node: block.filter(pa.array(taken)) for node, taken in mine.items()}


def source_report(
    split: int, entries: Mapping[int, Sequence[Entry]], table: CompiledTable
) -> dict[str, Any]:
    """Return what one split node has read: records per stream, bytes, and records with a reader."""
    records = {stream: sum(entry.records for entry in read) for stream, read in entries.items()}
    return {
        "split": split,
        "streams": records,
        "bytes": sum(len(entry.block) for read in entries.values() for entry in read),
        "read": sum(n for stream, n in records.items() if stream in table.readers_of_stream),
    }


def _envelope(parts: Sequence[Part], source: Mapping[str, Any]) -> Envelope:
    return Envelope(
        streams=[part.stream for part in parts],
        appended_ms=[part.entry.appended_ms for part in parts],
        lengths=[part.records.num_rows for part in parts],
        newest_ms=[part.entry.newest_ms for part in parts],
        marks_ms=[part.entry.mark_ms for part in parts],
        records=_concatenated([part.records for part in parts if part.records.num_rows]),
        source=dict(source),
    )


def _concatenated(present: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    # The stubs are older than the function.
    return pa.concat_batches(present) if present else EMPTY  # type: ignore[attr-defined]
