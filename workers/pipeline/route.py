"""Routing: the entries a split node has read, put into one envelope per node."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from controlplane.wire.blocks import decode_block
from controlplane.wire.log import Entry
from controlplane.wire.shedding import INPUT
from workers.pipeline.engine.hashing import hashes_of
from workers.pipeline.engine.records import LUCK, Extras, evaluator_of
from workers.pipeline.engine.shedding import is_dropped, luck_of
from workers.pipeline.envelope import EMPTY, Envelope
from workers.pipeline.schemes import Signals
from workers.pipeline.tables import CompiledTable, Readers

# The node whose envelope also carries what the split node reports; node 0 always exists.
REPORTING_NODE: Final = 0


class Block(NamedTuple):
    """Records of one block, with what the split node says of each."""

    records: pa.RecordBatch
    extras: Extras

    def where(self, taken: NDArray[np.bool_]) -> "Block":
        """Return the records that are taken."""
        if taken.all():
            return self
        extras = {name: values[taken] for name, values in self.extras.items()}
        return Block(self.records.filter(pa.array(taken)), extras)


class Part(NamedTuple):
    """The records of one block that one node needs."""

    stream: int
    entry: Entry
    block: Block


def route(
    entries: Mapping[int, Sequence[Entry]],
    table: CompiledTable,
    slots: int,
    source: Mapping[str, Any],
    signals: Signals | None = None,
) -> list[Envelope]:
    """Return one envelope for each node 0..slots-1; a node without records gets an empty one.

    `source` is what the split node reports; it travels in the reporting node's envelope, together
    with how many records each input arc dropped.

    A record goes once to every node that needs it, whatever number of queries there read it
    (paper 000, section 2: "a stream is delivered at most once per server"). A node that has only
    some tasks of a query gets the records of their keys, and of every block its event times.
    """
    wanted: list[list[Part]] = [[] for _ in range(slots)]
    dropped: dict[int, int] = {}
    for stream, read in entries.items():
        readers = table.readers_of_stream.get(stream)
        for entry in read:
            block = _kept(stream, entry, table, dropped)
            if readers is None or block is None:
                continue
            for node, part in _by_node(stream, block, readers, signals or {}).items():
                wanted[node].append(Part(stream, entry, part))
    report = {**source, "dropped": dropped} if dropped else source
    return [
        _envelope(parts, report if node == REPORTING_NODE else {})
        for node, parts in enumerate(wanted)
    ]


def _kept(stream: int, entry: Entry, table: CompiledTable, dropped: dict[int, int]) -> Block | None:
    """Return the records that the stream's input arc lets through; None: nobody wants to know."""
    shed = table.table.sheds.get((stream, INPUT))
    readers = table.readers_of_stream.get(stream)
    if shed is None and readers is None:
        return None
    records = decode_block(entry.block)
    luck = None
    if shed is not None or (readers is not None and readers.sheds):
        luck = luck_of(stream, entry.position, records.num_rows)
    block = Block(records, {LUCK: luck} if luck is not None else {})
    if shed is None or luck is None:
        return block
    times = np.asarray(records.column("ts").cast(pa.int64()))
    gone = is_dropped(shed, luck, times)
    dropped[stream] = dropped.get(stream, 0) + int(gone.sum())
    return block.where(~gone)


def _by_node(stream: int, block: Block, readers: Readers, signals: Signals) -> dict[int, Block]:
    """Return the records of a block that each node needs."""
    found = dict.fromkeys(readers.whole, block)
    if not readers.keyed:
        return found
    mine: dict[int, NDArray[np.bool_]] = {
        node: np.zeros(block.records.num_rows, np.bool_) for node in readers.marked
    }
    evaluator = evaluator_of(stream, block.records)
    chosen: dict[str, NDArray[np.uint64]] = {}
    for key, owners, scheme, column in readers.keyed:
        hashes = hashes_of([evaluator.array(one) for one in key], block.records.num_rows)
        task = scheme.tasks_of(hashes, owners, signals)
        if column:
            chosen[column] = task.astype(np.uint64)
        node_of = np.array(owners)[task]
        for node in set(owners) - set(readers.whole):
            mine[node] = mine.get(node, False) | (node_of == node)
    full = Block(block.records, {**block.extras, **chosen})
    found = dict.fromkeys(readers.whole, full)
    return found | {node: full.where(taken) for node, taken in mine.items() if node not in found}


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
    filled = [part.block for part in parts if part.block.records.num_rows]
    return Envelope(
        streams=[part.stream for part in parts],
        appended_ms=[part.entry.appended_ms for part in parts],
        lengths=[part.block.records.num_rows for part in parts],
        newest_ms=[part.entry.newest_ms for part in parts],
        marks_ms=[part.entry.mark_ms for part in parts],
        records=_concatenated([block.records for block in filled]),
        extras=_extras(filled),
        source=dict(source),
    )


def _extras(blocks: Sequence[Block]) -> Extras:
    names = dict.fromkeys(name for block in blocks for name in block.extras)
    return {
        name: np.concatenate(
            [
                block.extras.get(name, np.zeros(block.records.num_rows, np.uint64))
                for block in blocks
            ]
        )
        for name in names
    }


def _concatenated(present: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    # The stubs are older than the function.
    return pa.concat_batches(present) if present else EMPTY  # type: ignore[attr-defined]
