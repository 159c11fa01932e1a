"""Routing: the entries a split node has read, put into one envelope per node."""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from controlplane.wire.drop_counts import DropCounter, periods_of
from controlplane.wire.language.tree import Expression
from controlplane.wire.log.values import NO_TIME, LogEntry
from controlplane.wire.routing.drop_rules import INPUT, DropRule
from workers.pipeline.engine.evaluation import drop_rules
from workers.pipeline.engine.evaluation.evaluator import Evaluator
from workers.pipeline.engine.evaluation.records import (
    DELIVERY_DROPPED,
    INPUT_DROPPED,
    SAMPLE_HASH,
    Extras,
    Int64s,
    evaluator_of,
)
from workers.pipeline.engine.failures.probe import probe_call
from workers.pipeline.engine.hashing import Hashes, hash_rows
from workers.pipeline.exchange.envelope import EMPTY, TIME_COLUMN, Envelope, join_extras
from workers.pipeline.routing.compiled_table import CompiledTable, Keyed, Readers
from workers.pipeline.shedding.drops import NO_DROPS, LadderDrops
from workers.pipeline.split_nodes.delivery import Delivery, is_unneeded
from workers.pipeline.split_nodes.grouping_states import KeyRouter
from workers.pipeline.split_nodes.key_sampling import KeySampler, RoutedRecords
from workers.pipeline.split_nodes.projection import DeadLetterBuffer, Projection, concatenate

logger = logging.getLogger("weir.pipeline")

# The node whose envelope also carries what the split node reports; node 0 always exists.
REPORTING_NODE: Final = 0


class StreamRecords(NamedTuple):
    """Records of one stream, entry after entry, with extra columns of split nodes.

    `records`: the first column is the event time (`projection.TIME_COLUMN`); `lengths`: how many
    are of each entry; `event_time`: under which name queries read the event time.
    """

    records: pa.RecordBatch
    extras: Extras
    lengths: Int64s
    event_time: str = ""

    @property
    def ts_ms(self) -> Int64s:
        """Return the event times in milliseconds."""
        return np.asarray(self.records.column(TIME_COLUMN))

    def where(self, taken: NDArray[np.bool_]) -> "StreamRecords":
        """Return the records that are taken."""
        if taken.all():
            return self
        stops = np.concatenate([[0], np.cumsum(taken)])
        ends = np.cumsum(self.lengths)
        lengths = stops[ends] - stops[ends - self.lengths]
        extras = {name: values[taken] for name, values in self.extras.items()}
        return self._replace(
            records=self.records.filter(pa.array(taken)), extras=extras, lengths=lengths
        )

    def with_dropped(self, name: str, shares: NDArray[np.float64]) -> "StreamRecords":
        """Return the records with the probabilities at which others like them were dropped.

        A column that exists already has those of earlier rules, which are independent.
        """
        if name in self.extras:
            shares = 1 - (1 - shares) * (1 - self.extras[name].view(np.float64))
        return self._replace(extras={**self.extras, name: shares.view(np.uint64)})

    def by(self, node_of: Int64s, nodes: Sequence[int]) -> "dict[int, StreamRecords]":
        """Return the records of each node: one pass over all, instead of one for each."""
        count, entries = max(nodes) + 1, len(self.lengths)
        order = np.argsort(node_of, kind="stable")
        records = self.records.take(order)
        extras = {name: values[order] for name, values in self.extras.items()}
        entry = np.repeat(np.arange(entries), self.lengths)
        lengths = np.bincount(node_of * entries + entry, minlength=count * entries)
        result, offset = {}, 0
        for node, node_lengths in enumerate(lengths.reshape(count, entries)):
            stop = offset + int(node_lengths.sum())
            node_extras = {name: values[offset:stop] for name, values in extras.items()}
            piece = records.slice(offset, stop - offset)
            result[node] = self._replace(records=piece, extras=node_extras, lengths=node_lengths)
            offset = stop
        return {node: result[node] for node in nodes}


class NodeRecords(NamedTuple):
    """The records of one stream that one node needs."""

    stream: int
    entries: Sequence[LogEntry]
    blocks: StreamRecords


class Dispatched(NamedTuple):
    """The output of a split node: the envelopes of each node, and the dead letters."""

    envelopes: list[list[Envelope]]
    dead: DeadLetterBuffer


def dispatch(
    entries: Mapping[int, Sequence[LogEntry]],
    table: CompiledTable,
    nodes: int,
    source: Mapping[str, Any],
    router: KeyRouter | None = None,
    sampler: KeySampler | None = None,
    drops: LadderDrops = NO_DROPS,
    dead: DeadLetterBuffer | None = None,
    *,
    probe_first: bool = False,
) -> Dispatched:
    """Return the envelopes of each node 0..nodes-1; a node without records gets an empty one.

    `source`: the report of the split node. The first envelope of the reporting node carries it,
    with the dropped records of each input edge, the dead letters, and the states of key groupings.
    `router`: by default without earlier states. `drops`: of the ladder. `dead`: dead letters so
    far. `probe_first`: evaluate keys in a forked child first, as an attempt ended the process.

    Each node gets a record once, regardless of how many of its queries read the record (paper 000,
    section 2: "a stream is delivered at most once per server"). A node with some tasks of a query
    gets the records of their keys, and the event times of every block.
    """
    per_node: list[list[NodeRecords]] = [[] for _ in range(nodes)]
    edges = InputEdges(table, drops, dead=dead or DeadLetterBuffer())
    delivery = Delivery(table, drops, edges.counter)
    stage = Routing(router or KeyRouter(table), delivery, sampler, probe_first=probe_first)
    # In the order of their ids: the states of key groupings depend on it.
    for stream, read in sorted(entries.items()):
        readers = table.readers_of_stream.get(stream)
        blocks = edges.read_stream(stream, read)
        if blocks is not None and readers is not None:
            for node, records in stage.by_node(stream, blocks, readers).items():
                per_node[node].append(NodeRecords(stream, read, records))
    read_ms = max((entry.appended_ms for read in entries.values() for entry in read), default=0)
    report = dict(source) | edges.report(delivery)
    report |= stage.router.report() | (sampler.report() if sampler else {})
    envelopes = [_envelopes(parts, report if node == REPORTING_NODE else {}, read_ms)
                 for node, parts in enumerate(per_node)]  # fmt: skip
    return Dispatched(envelopes, edges.dead)


@dataclass
class InputEdges:
    """The input edges of streams: what they keep, and what was dropped and was unreadable.

    `dropped`, `ladder_dropped`: records by stream that a rule of the edge, or else the ladder,
    dropped. `late`: late records by stream. `counter`: counts the same records by event time.
    """

    table: CompiledTable
    drops: LadderDrops = NO_DROPS
    dropped: dict[int, int] = field(default_factory=dict)
    ladder_dropped: dict[int, int] = field(default_factory=dict)
    dead: DeadLetterBuffer = field(default_factory=DeadLetterBuffer)
    late: dict[int, int] = field(default_factory=dict)
    counter: DropCounter = field(default_factory=DropCounter)

    def report(self, delivery: Delivery) -> dict[str, Any]:
        """Return what the report of the split node has of these edges, and of those to queries."""
        parts: dict[str, Mapping[Any, Any] | list[Any]] = {
            "dropped": dict[Any, int](self.dropped) | delivery.dropped,
            "ladder_dropped": dict[Any, int](self.ladder_dropped) | delivery.ladder_dropped,
            "dead": self.dead.counts,
            "late": self.late,
            "drop_counts": self.counter.rows(),
        }
        return {name: counts for name, counts in parts.items() if counts}

    def read_stream(self, stream: int, read: Sequence[LogEntry]) -> StreamRecords | None:
        """Return the records that the stream's input edge keeps; None without readers."""
        rule = self.table.table.drop_rules.get((stream, INPUT))
        by_ladder = self.drops.rule((stream, INPUT))
        readers = self.table.readers_of_stream.get(stream)
        schema = self.table.table.schemas.get(stream)
        if schema is None or (rule is None and by_ladder is None and readers is None):
            return None
        projection = Projection(stream, schema, () if readers is None else readers.columns)
        if rule is None and by_ladder is not None and drop_rules.drops_all(by_ladder):
            # The blocks are not even decoded; their event times travel.
            _add(self.ladder_dropped, stream, sum(entry.records for entry in read))
            self.counter.drop(stream, INPUT, by_ladder, _periods_of_entries(read))
            none = projection.of((), self.dead)
            return StreamRecords(none.records, {}, np.zeros(len(read), np.int64), none.event_time)
        result = projection.of(read, self.dead)
        if result.late:
            _add(self.late, stream, result.late)
        needs_hash = readers is not None and readers.needs_sample_hash
        needs_hash = needs_hash or self.drops.needs_sample_hash(stream)
        extras: Extras = {}
        if rule is not None or by_ladder is not None or needs_hash:
            extras = {SAMPLE_HASH: _hashes(stream, read, result.lengths)}
        blocks = StreamRecords(result.records, extras, result.lengths, result.event_time)
        if result.good is not None:
            blocks = blocks.where(result.good)
        blocks = self._kept(blocks, stream, rule, self.dropped)
        return self._kept(blocks, stream, by_ladder, self.ladder_dropped)

    def _kept(
        self, blocks: StreamRecords, stream: int, rule: DropRule | None, dropped: dict[int, int]
    ) -> StreamRecords:
        """Return the records that a rule keeps; the number of the others is added to `dropped`."""
        if rule is None:
            return blocks
        is_dropped_row = drop_rules.is_dropped(rule, blocks.extras[SAMPLE_HASH], blocks.ts_ms)
        _add(dropped, stream, int(is_dropped_row.sum()))
        self.counter.drop(stream, INPUT, rule, periods_of(blocks.ts_ms[is_dropped_row]))
        blocks = blocks.where(~is_dropped_row)
        return blocks.with_dropped(INPUT_DROPPED, drop_rules.dropped_shares(rule, blocks.ts_ms))


def _periods_of_entries(read: Sequence[LogEntry]) -> Counter[int]:
    """Return the records by period, those of an entry at the newest event time of the entry."""
    known = [entry for entry in read if entry.newest_ms != NO_TIME]
    times = np.array([entry.newest_ms for entry in known], np.int64)
    return periods_of(np.repeat(times, np.array([entry.records for entry in known], np.int64)))


def _hashes(stream: int, read: Sequence[LogEntry], lengths: Int64s) -> NDArray[np.uint64]:
    pairs = zip(read, lengths.tolist(), strict=True)
    hashes = [drop_rules.sample_hashes(stream, entry.position, records) for entry, records in pairs]
    return np.concatenate([np.zeros(0, np.uint64), *hashes])


def _add(counts: dict[int, int], stream: int, records: int) -> None:
    counts[stream] = counts.get(stream, 0) + records


@dataclass
class Routing:
    """The routing of one batch: what assigns records to tasks, drops them, and samples keys."""

    router: KeyRouter
    delivery: Delivery
    sampler: KeySampler | None = None
    probe_first: bool = False

    def by_node(
        self, stream: int, blocks: StreamRecords, readers: Readers
    ) -> dict[int, StreamRecords]:
        """Return the records of a stream that each node needs."""
        nodes_of: dict[Keyed, Int64s | None] = {}
        result = self._readers(stream, blocks, readers, nodes_of)
        hashes = blocks.extras.get(SAMPLE_HASH)
        unneeded = self.delivery.unneeded(stream, hashes, blocks.ts_ms, nodes_of)
        # Nodes with the same records and share get one copy.
        needed: dict[tuple[int, float], StreamRecords] = {}
        for node, share in unneeded.items():
            records = result[node]
            place = id(records), share
            if place not in needed:
                some = records.where(~is_unneeded(share, records.extras[SAMPLE_HASH]))
                shares = np.full(some.records.num_rows, share)
                needed[place] = some.with_dropped(DELIVERY_DROPPED, shares)
            result[node] = needed[place]
        return result

    def _readers(
        self,
        stream: int,
        blocks: StreamRecords,
        readers: Readers,
        nodes_of: dict[Keyed, Int64s | None],
    ) -> dict[int, StreamRecords]:
        """Return the records that each node reads; adds the nodes of their tasks to `nodes_of`."""
        if not readers.keyed and self.sampler is None:
            return dict.fromkeys(readers.whole, blocks)
        evaluator = evaluator_of(stream, blocks.records, blocks.ts_ms, blocks.event_time)
        routed = self._routed(readers, evaluator, blocks) if readers.keyed else {}
        if self.sampler is not None:
            known = {keyed: tasks for keyed, tasks in routed.items() if tasks is not None}
            self.sampler.add(stream, evaluator, blocks.records.num_rows, known)
        if not routed:
            return dict.fromkeys(readers.whole, blocks)
        whole = dict.fromkeys(readers.whole)
        chosen: dict[str, NDArray[np.uint64]] = {}
        targets: list[Int64s] = []
        for keyed, tasks in routed.items():
            task = np.zeros(blocks.records.num_rows, np.int64) if tasks is None else tasks.tasks
            if tasks is None:
                # Every record to all of its nodes, for task 0: right for those that can compute it.
                whole |= dict.fromkeys(keyed.owners)
            if keyed.column:
                chosen[keyed.column] = task.astype(np.uint64)
            targets.append(np.array(keyed.owners)[task])
            nodes_of[keyed] = None if tasks is None else targets[-1]
        full = blocks._replace(extras={**blocks.extras, **chosen})
        return _pieces(full, list(whole), targets, readers.time_readers)

    def _routed(
        self, readers: Readers, evaluator: Evaluator, blocks: StreamRecords
    ) -> dict[Keyed, RoutedRecords | None]:
        """Return the tasks of all records for each kind of reader, None if they are unknown."""
        result: dict[Keyed, RoutedRecords | None] = {}
        hashes: dict[Any, Hashes] = {}
        for keyed in readers.keyed:
            try:
                if keyed.key not in hashes:
                    hashes[keyed.key] = self._hashes(keyed.key, evaluator, blocks)
            except Exception:  # noqa: BLE001 - its nodes come to the same, and report the fault
                result[keyed] = None
                continue
            try:
                tasks = self.router.tasks_of(keyed, hashes[keyed.key], blocks.ts_ms)
                result[keyed] = RoutedRecords(hashes[keyed.key], tasks)
            except Exception:
                logger.exception("the key grouping of query %s routes to task 0", keyed.leader)
                result[keyed] = None
        return result

    def _hashes(
        self, key: Sequence[Expression], evaluator: Evaluator, blocks: StreamRecords
    ) -> Hashes:
        if self.probe_first:
            probe_call(lambda: [evaluator.array(item) for item in key])
        return hash_rows([evaluator.array(item) for item in key], blocks.records.num_rows)


def _pieces(
    full: StreamRecords,
    whole: Sequence[int],
    nodes_of: Sequence[Int64s],
    time_readers: Sequence[int],
) -> dict[int, StreamRecords]:
    """Return the records of each node; `whole`: nodes that need all of them."""
    result = dict.fromkeys(whole, full)
    some = [node for node in time_readers if node not in result]
    if len(nodes_of) == 1 and some:
        parts = full.by(nodes_of[0], time_readers)
        return result | {node: part for node, part in parts.items() if node in some}
    for node in some:
        result[node] = full.where(np.logical_or.reduce([item == node for item in nodes_of]))
    return result


def source_report(
    split: int, entries: Mapping[int, Sequence[LogEntry]], table: CompiledTable
) -> dict[str, Any]:
    """Return what one split node has read.

    Records and the newest event time (ms) per stream, bytes, and the records with a reader.
    """
    records = {stream: sum(entry.records for entry in read) for stream, read in entries.items()}
    return {
        "split": split,
        "streams": records,
        "newest": _newest(entries),
        "appended_ms": max((e.appended_ms for read in entries.values() for e in read), default=0),
        "bytes": sum(len(entry.block) for read in entries.values() for entry in read),
        "read": sum(n for stream, n in records.items() if stream in table.readers_of_stream),
    }


def _newest(entries: Mapping[int, Sequence[LogEntry]]) -> dict[int, int]:
    result = {stream: max(entry.newest_ms for entry in read) for stream, read in entries.items()}
    return {stream: ms for stream, ms in result.items() if ms != NO_TIME}


def _envelopes(
    parts: Sequence[NodeRecords], source: Mapping[str, Any], read_ms: int
) -> list[Envelope]:
    """Return one envelope per set of columns, an empty one without records."""
    same: dict[tuple[pa.Schema, str], list[NodeRecords]] = {}
    for part in parts:
        kind = part.blocks.records.schema, part.blocks.event_time
        same.setdefault(kind, []).append(part)
    first, *rest = same.values() or [()]
    return [_envelope(first, source, read_ms), *(_envelope(some, {}, read_ms) for some in rest)]


def _envelope(parts: Sequence[NodeRecords], source: Mapping[str, Any], read_ms: int) -> Envelope:
    filled = [part.blocks for part in parts if part.blocks.records.num_rows]
    entries = [entry for part in parts for entry in part.entries]
    return Envelope(
        streams=[part.stream for part in parts for _ in part.entries],
        appended_ms=[entry.appended_ms for entry in entries],
        lengths=[length for part in parts for length in part.blocks.lengths.tolist()],
        newest_ms=[entry.newest_ms for entry in entries],
        marks_ms=[entry.mark_ms for entry in entries],
        records=concatenate([blocks.records for blocks in filled]) if filled else EMPTY,
        extras=join_extras(filled),
        source=dict(source),
        event_time=filled[0].event_time if filled else "",
        read_ms=read_ms,
    )
