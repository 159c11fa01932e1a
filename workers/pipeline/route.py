"""Routing: the entries a split node has read, put into one envelope per node."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from controlplane.wire.blocks import decode_block
from controlplane.wire.log import Entry
from workers.pipeline.envelope import EMPTY, Envelope
from workers.pipeline.tables import CompiledTable

# The node whose envelope also carries what the split node reports; node 0 always exists.
REPORTING_NODE: Final = 0


def route(
    entries: Mapping[int, Sequence[Entry]],
    table: CompiledTable,
    slots: int,
    source: Mapping[str, Any],
) -> list[Envelope]:
    """Return one envelope for each node 0..slots-1; a node without records gets an empty one.

    `source` is what the split node reports; it travels in the reporting node's envelope.

    A record goes once to every node that hosts a query over its stream, whatever number of
    queries there read it (paper 000, section 2: "a stream is delivered at most once per server").
    """
    wanted: list[list[tuple[int, Entry, pa.RecordBatch]]] = [[] for _ in range(slots)]
    for stream, read in entries.items():
        nodes = table.nodes_of_stream.get(stream, ())
        if not nodes:
            continue
        decoded = [(stream, entry, decode_block(entry.block)) for entry in read]
        for node in nodes:
            wanted[node].extend(decoded)
    return [
        _envelope(runs, source if node == REPORTING_NODE else {})
        for node, runs in enumerate(wanted)
    ]


def source_report(
    split: int, entries: Mapping[int, Sequence[Entry]], table: CompiledTable
) -> dict[str, Any]:
    """Return what one split node has read: records per stream, bytes, and records with a reader."""
    records = {stream: sum(entry.records for entry in read) for stream, read in entries.items()}
    return {
        "split": split,
        "streams": records,
        "bytes": sum(len(entry.block) for read in entries.values() for entry in read),
        "read": sum(n for stream, n in records.items() if stream in table.nodes_of_stream),
    }


def _envelope(
    runs: Sequence[tuple[int, Entry, pa.RecordBatch]], source: Mapping[str, Any]
) -> Envelope:
    return Envelope(
        streams=[stream for stream, _, _ in runs],
        appended_ms=[entry.appended_ms for _, entry, _ in runs],
        lengths=[batch.num_rows for _, _, batch in runs],
        newest_ms=[entry.newest_ms for _, entry, _ in runs],
        marks_ms=[entry.mark_ms for _, entry, _ in runs],
        records=_concatenated(batch for _, _, batch in runs),
        source=dict(source),
    )


def _concatenated(batches: Iterable[pa.RecordBatch]) -> pa.RecordBatch:
    present = list(batches)
    # The stubs are older than the function.
    return pa.concat_batches(present) if present else EMPTY  # type: ignore[attr-defined]
