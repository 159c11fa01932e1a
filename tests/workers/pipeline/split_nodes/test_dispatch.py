"""Routing: each record once per node that needs it."""

import json
from typing import Any

import pyarrow as pa

from algorithms.partitioning.catalog import grouping_text
from controlplane.wire.language.registered import function
from controlplane.wire.log.values import LogEntry
from controlplane.wire.query_text import QueryText
from controlplane.wire.records.record_codec import encode_block
from controlplane.wire.routing.cluster_actions import AssignStream, SetDropRule
from controlplane.wire.routing.drop_rules import DropRule
from controlplane.wire.routing.query_actions import AddQuery
from tests.support.schemas import REPORTS
from tests.support.tables import compiled
from tests.support.texts import SUMMARY_TEXT
from tests.workers.pipeline.engine.given import changed_rows
from workers.pipeline.engine.advance import advance_state
from workers.pipeline.engine.store import MemoryStore
from workers.pipeline.exchange.envelope import Envelope, records_of
from workers.pipeline.split_nodes.dispatch import Dispatched, dispatch, source_report

TABLE = compiled(
    AssignStream(1, 0),
    AssignStream(2, 0),
    AssignStream(3, 0),
    AddQuery(10, 0, 0, (1, 2), SUMMARY_TEXT),
    AddQuery(11, 0, 0, (1,), SUMMARY_TEXT),
    AddQuery(12, 0, 2, (1,), SUMMARY_TEXT),
)


def only(routed: Dispatched) -> list[Envelope]:
    """Return the one envelope of each node."""
    assert all(len(of_node) == 1 for of_node in routed.envelopes)
    return [of_node[0] for of_node in routed.envelopes]


def entry(position: str, *cars: int) -> LogEntry:
    rows = [{"ts": 0, "car": car, "x": 0, "y": 0, "speed": car} for car in cars]
    block = encode_block(pa.RecordBatch.from_pylist(rows, REPORTS.arrow), "ts")
    return LogEntry(position, len(cars), block, newest_ms=0, mark_ms=None)


ENTRIES = {1: [entry("5-0", 1, 2), entry("6-0", 3)], 2: [entry("6-0", 4)], 3: [entry("6-0", 5, 6)]}


def test_record_goes_once_to_every_node_with_a_reader() -> None:
    """Two queries of node 0 read stream 1; its records come once."""
    node_0, node_1, node_2 = only(dispatch(ENTRIES, TABLE, 3, {}))
    assert node_0.records.column("speed").to_pylist() == [1, 2, 3, 4]
    assert [(run.stream, run.records) for run in node_0.runs()] == [(1, 2), (1, 1), (2, 1)]
    assert node_1.records.num_rows == 0
    assert node_2.records.column("speed").to_pylist() == [1, 2, 3]


def test_unread_stream_is_counted_and_not_delivered() -> None:
    """Stream 3 has no query: it is in the split's records, not in what is read."""
    assert source_report(0, ENTRIES, TABLE) == {
        "split": 0,
        "streams": {1: 3, 2: 1, 3: 2},
        "newest": {1: 0, 2: 0, 3: 0},
        "appended_ms": 0,
        "bytes": sum(len(e.block) for read in ENTRIES.values() for e in read),
        "read": 4,
    }


def test_envelope_comes_back_from_its_bytes() -> None:
    """Also the empty one, which every node gets as its tick."""
    for envelope in only(dispatch(ENTRIES, TABLE, 3, {"split": 0})):
        assert Envelope.decode(envelope.encode()) == envelope


SPREAD = QueryText({"n": "count(*)"}, key=["car"])


def test_a_node_with_some_tasks_gets_the_records_of_their_keys() -> None:
    """And of every block its event times, so that it knows what is late."""
    task_ranges = ((0, 0, 2), (1, 2, 4))
    table = compiled(
        AssignStream(1, 0),
        AddQuery(10, 0, 0, (1,), json.dumps(SPREAD.to_json()), task_ranges),
        AddQuery(11, 0, 2, (1,), SUMMARY_TEXT),
    )
    cars = list(range(100))
    entries = {1: [entry("5-0", *cars[:99]), entry("6-0", cars[99])]}
    node_0, node_1, node_2 = only(dispatch(entries, table, 3, {}))
    parts = [node.records.column("speed").to_pylist() for node in (node_0, node_1)]
    assert {*parts[0], *parts[1]} == set(cars)
    assert len(parts[0]) + len(parts[1]) == len(cars)
    assert min(map(len, parts)) > 30
    assert node_2.records.column("speed").to_pylist() == cars
    assert [len(node.runs()) for node in (node_0, node_1, node_2)] == [2, 2, 2]
    # The tasks that the nodes compute are those of the records that they got.
    for number, cars_there in enumerate(parts):
        tasks = table.tasks_of_node(number)
        envelope = (node_0, node_1)[number]
        changed = advance_state(MemoryStore(), tasks, records_of([envelope]), {}, 0)
        assert sum(sum(rows["s0"].to_pylist()) for _, _, rows in changed_rows(changed)) == len(
            cars_there
        )


def test_a_key_that_is_split_carries_its_task() -> None:
    """Every record goes to the node of the task that it says; an aggregator gets event times."""
    key_grouping = grouping_text("partial_key")
    task_ranges = ((0, 0, 2), (1, 2, 4))
    table = compiled(
        AssignStream(1, 0),
        AddQuery(
            10, 0, 0, (1,), json.dumps(SPREAD.to_json()), task_ranges, key_grouping, aggregator=2
        ),
    )
    entries = {1: [entry("5-0", *[1] * 60, *range(40))]}
    nodes = [Envelope.decode(one.encode()) for one in only(dispatch(entries, table, 3, {}))]
    for number in (0, 1):
        tasks = nodes[number].extras["task of 10"]
        assert {task // 2 for task in tasks.tolist()} <= {number}
        assert len(tasks) == nodes[number].records.num_rows
    assert sum(node.records.num_rows for node in nodes) == 100
    assert [len(node.runs()) for node in nodes] == [1, 1, 1]


def test_a_split_key_over_one_of_several_streams_needs_no_record_of_it() -> None:
    """A node gets records of another stream, for another query, and none with a task."""
    table = compiled(
        AssignStream(1, 0),
        AssignStream(2, 0),
        AddQuery(10, 0, 0, (1,), json.dumps(SPREAD.to_json()), ((0, 0, 2), (1, 2, 4)),
                 grouping_text("partial_key"), aggregator=2),
        AddQuery(11, 0, 0, (2,), SUMMARY_TEXT),
    )  # fmt: skip
    for node, envelope in enumerate(only(dispatch({2: [entry("5-0", 1, 2, 3)]}, table, 3, {}))):
        records = records_of([Envelope.decode(envelope.encode())])
        found = advance_state(MemoryStore(), table.tasks_of_node(node), records, {}, 0)
        assert found.faults == {}
        assert sum(sum(rows["s0"].to_pylist()) for _, _, rows in changed_rows(found)) == 3 * (
            node == 0
        )


def test_a_key_that_cannot_be_computed_leaves_the_others_alone() -> None:
    """Its nodes get every record, meet the same trouble, and report the fault."""
    bad = QueryText({"n": "count(*)"}, columns={"of": "test_bad_key(car)"}, key=["of"])
    texts = [json.dumps(one.to_json()) for one in (bad, SPREAD)]
    task_ranges = ((0, 0, 2), (1, 2, 4))
    table = compiled(
        AssignStream(1, 0),
        AddQuery(10, 0, 0, (1,), texts[0], task_ranges),
        AddQuery(11, 0, 0, (1,), texts[1], task_ranges),
    )
    nodes = only(dispatch({1: [entry("5-0", *range(50))]}, table, 2, {}))
    counted = 0
    for node, envelope in enumerate(nodes):
        found = advance_state(
            MemoryStore(), table.tasks_of_node(node), records_of([envelope]), {}, 0
        )
        assert {query: fault.why for query, fault in found.faults.items()} == {
            10: "test_bad_key raised KeyError: 'no such shelf'"
        }
        counted += sum(sum(rows["s0"].to_pylist()) for _, _, rows in changed_rows(found))
    assert counted == 50


@function(takes=("int",), gives="int", name="test_bad_key")
def bad_key(values: Any) -> Any:
    raise KeyError("no such shelf")


def test_an_input_edge_counts_what_it_drops() -> None:
    """Kept and dropped are what was read, exactly; also of a stream that nobody reads."""
    table = compiled(
        AssignStream(1, 0),
        AssignStream(3, 0),
        AddQuery(10, 0, 1, (1,), SUMMARY_TEXT),
        SetDropRule(1, rule=DropRule.of(0.3, seed=4)),
        SetDropRule(3, rule=DropRule.of(1.0)),
    )
    entries = {1: [entry("5-0", *range(500)), entry("6-0", *range(300))], 3: [entry("6-0", 5, 6)]}
    report_stages, reader, _ = only(dispatch(entries, table, 3, {}))
    dropped = report_stages.source["dropped"]
    assert dropped[3] == 2
    assert reader.records.num_rows + dropped[1] == 800
    assert 160 < dropped[1] < 320
    assert only(dispatch(entries, table, 3, {}))[1].encode() == reader.encode()
