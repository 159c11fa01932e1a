"""The drop rules of a ladder in one batch, at split nodes and at nodes."""

import json
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from algorithms.partitioning.catalog import grouping_text
from controlplane.wire.log.values import LogEntry
from controlplane.wire.query_text import QueryText
from controlplane.wire.records.record_codec import encode_block
from controlplane.wire.routing.actions import Action
from controlplane.wire.routing.cluster_actions import AssignStream, SetDropRule, SetLadder
from controlplane.wire.routing.drop_rules import INPUT, DropRule, Edge
from controlplane.wire.routing.ladder import Cost, KeptPart, Ladder, ResourceKind, Rung, WindowDrop
from controlplane.wire.routing.query_actions import AddQuery
from controlplane.wire.routing.route import NO_AGGREGATOR
from tests.support.schemas import REPORTS
from tests.support.tables import compiled
from tests.support.texts import SUMMARY_TEXT
from tests.workers.pipeline.engine.given import changed_rows
from workers.pipeline.engine.advance import advance_state
from workers.pipeline.engine.partial_aggregation import BatchChanges
from workers.pipeline.engine.store import MemoryStore
from workers.pipeline.exchange.envelope import Envelope, records_of
from workers.pipeline.routing.compiled_table import CompiledTable
from workers.pipeline.shedding.drops import NO_DROPS, LadderDrops
from workers.pipeline.shedding.window_steps import WINDOW_SEED, WindowRules
from workers.pipeline.split_nodes.dispatch import dispatch

COUNT = 4_000
STREAM = 1
# Of the queries 10 and 11, the same is dropped, of 12 more, of 13 nothing.
PARTS = {(STREAM, INPUT): 0.5, (STREAM, 10): 0.25, (STREAM, 11): 0.25, (STREAM, 12): 0.1}


def entry(position: str, records: int, newest_ms: int = 0) -> LogEntry:
    rows = [{"ts": n, "car": n, "x": 0, "y": 0, "speed": n} for n in range(records)]
    block = encode_block(pa.RecordBatch.from_pylist(rows, REPORTS.arrow), "ts")
    return LogEntry(position, records, block, newest_ms, mark_ms=None)


ENTRIES = {STREAM: [entry("5-0", COUNT - 1, 777), entry("6-0", 1, 999)]}


def ladder_of(parts: dict[Edge, float], *windows: WindowDrop) -> Ladder:
    """Return a ladder of one rung."""
    kept = tuple(KeptPart(*edge, part) for edge, part in parts.items())
    cost = Cost(STREAM, INPUT, ResourceKind.NODE, 0, 0.1)
    return Ladder((Rung(2.0, kept),), (cost,), windows)


def table_of(ladder: Ladder, *more: Action) -> CompiledTable:
    queries = [AddQuery(query, 0, 0, (STREAM,), SUMMARY_TEXT) for query in (10, 11, 12, 13)]
    return compiled(AssignStream(STREAM, 0), *queries, SetLadder(ladder), *more)


def drops_of(
    table: CompiledTable, position: float, windows: WindowRules | None = None
) -> LadderDrops:
    return LadderDrops(table.ladder, position, windows or {})


def processed(table: CompiledTable, drops: LadderDrops) -> tuple[dict[str, Any], BatchChanges]:
    """Return the report of the split node, and what the node changed."""
    ((envelope,),) = dispatch(ENTRIES, table, 1, {}, drops=drops).envelopes
    again = Envelope.decode(envelope.encode())
    tasks = drops.tasks(table.tasks_of_node(0))
    return again.source, advance_state(MemoryStore(), tasks, records_of([again]), {}, 0)


def counted(changes: BatchChanges) -> dict[int, int]:
    """Return the records per query; samples and sketches are tables of their own."""
    result: dict[int, int] = {}
    for _, _, rows in changed_rows(changes):
        if "s0" not in rows.column_names:
            continue
        for query, records in zip(rows["query"].to_pylist(), rows["s0"].to_pylist(), strict=True):
            result[query] = result.get(query, 0) + records
    return result


@pytest.mark.parametrize("position", [0.0, 0.4, 1.0])
def test_parts_are_kept_up_to_each_edge(position: float) -> None:
    """Samples of edges are independent of those of the input edge, so their parts multiply."""
    table = table_of(ladder_of(PARTS))
    report, changes = processed(table, drops_of(table, position))
    kept, reached = counted(changes), COUNT - report.get("ladder_dropped", {}).get(str(STREAM), 0)
    assert kept[13] == reached
    assert kept[10] == kept[11]
    for edge, part in {**PARTS, (STREAM, 13): 0.5}.items():
        wanted = 1 - position * (1 - part)
        found = (reached if edge[1] == INPUT else kept[edge[1]]) / COUNT
        assert found == pytest.approx(wanted, abs=0.035), edge
        if edge[1] not in (INPUT, 13):
            assert kept[edge[1]] + changes.ladder_dropped.get(edge, 0) == reached
    assert changes.dropped == {}


def test_rules_and_the_ladder_are_counted_once() -> None:
    rules = [SetDropRule(STREAM, INPUT, DropRule.of(0.5, 1)),
             SetDropRule(STREAM, 12, DropRule.of(0.5, 2))]  # fmt: skip
    table = table_of(ladder_of(PARTS), *rules)
    report, changes = processed(table, drops_of(table, 1.0))
    by_rule, by_ladder = report["dropped"][str(STREAM)], report["ladder_dropped"][str(STREAM)]
    assert by_rule == pytest.approx(COUNT / 2, rel=0.1)
    assert by_ladder == pytest.approx(COUNT / 4, rel=0.1)
    reached = COUNT - by_rule - by_ladder
    edge = STREAM, 12
    assert changes.dropped[edge] == pytest.approx(reached / 2, rel=0.15)
    dropped = changes.dropped[edge] + changes.ladder_dropped[edge]
    assert counted(changes).get(12, 0) + dropped == reached


def test_a_stream_that_is_dropped_whole_is_not_decoded_and_its_event_times_travel() -> None:
    table = table_of(ladder_of({(STREAM, INPUT): 0.0}))
    broken = {STREAM: [*ENTRIES[STREAM], LogEntry("7-0", 9, b"broken", 1_234)]}
    result = dispatch(broken, table, 1, {}, drops=drops_of(table, 1.0))
    ((envelope,),) = result.envelopes
    again = Envelope.decode(envelope.encode())
    assert again.source["ladder_dropped"] == {str(STREAM): COUNT + 9}
    assert result.dead.letters == []
    assert (list(again.lengths), list(again.newest_ms)) == ([0, 0, 0], [777, 999, 1_234])
    half = dispatch(broken, table, 1, {}, drops=drops_of(table, 0.5))
    assert half.dead.counts == {str(STREAM): {"unreadable": 9}}


def test_queries_of_the_same_class_are_aggregated_once() -> None:
    table = table_of(ladder_of(PARTS))
    groups = drops_of(table, 0.5).tasks(table.tasks_of_node(0)).groups
    queries = [[item.query for item in group.subscriptions] for group in groups]
    assert sorted(queries) == [[10, 11], [12], [13]]
    assert drops_of(table, 0.0).tasks(table.tasks_of_node(0)) is table.tasks_of_node(0)


SPREAD = json.dumps(QueryText({"n": "count(*)"}, key=["car"]).to_json())


@pytest.mark.parametrize("grouping", ["", grouping_text("partial_key")])
@pytest.mark.parametrize("position", [0.0, 0.7, 1.0])
def test_nodes_get_the_records_that_one_of_their_queries_keeps(
    grouping: str, position: float
) -> None:
    """Of node 0, all queries drop; node 1 has one that keeps all; 20 has tasks on both."""
    spread = AddQuery(20, 0, 0, (STREAM,), SPREAD, ((0, 0, 2), (1, 2, 4)), grouping,
                      aggregator=2 if grouping else NO_AGGREGATOR)  # fmt: skip
    table = compiled(
        AssignStream(STREAM, 0), spread,
        AddQuery(10, 0, 0, (STREAM,), SUMMARY_TEXT), AddQuery(13, 0, 1, (STREAM,), SUMMARY_TEXT),
        SetDropRule(STREAM, 10, DropRule.of(0.5, 9)),
        SetLadder(ladder_of({(STREAM, INPUT): 0.5, (STREAM, 10): 0.1, (STREAM, 20): 0.25})),
    )  # fmt: skip
    drops = drops_of(table, position)
    nodes = dispatch(ENTRIES, table, 3, {}, drops=drops).envelopes
    report = nodes[0][0].source
    lost = report.get("ladder_dropped", {}).get(STREAM, 0)
    kept, dropped = Counter[int](), Counter[str]()
    dropped.update(
        {name: n for name, n in report.get("ladder_dropped", {}).items() if name != STREAM}
    )
    dropped.update(report.get("dropped", {}))
    for number, envelopes in enumerate(nodes):
        again = [Envelope.decode(envelope.encode()) for envelope in envelopes]
        tasks = drops.tasks(table.tasks_of_node(number))
        changes = advance_state(MemoryStore(), tasks, records_of(again), {}, 0)
        kept.update(counted(changes))
        for counts in (changes.dropped, changes.ladder_dropped):
            dropped.update({f"{stream}>{query}": n for (stream, query), n in counts.items()})
    reached = COUNT - lost
    assert kept[13] == reached
    for query, part in ((10, 0.1 * 0.5), (20, 0.25)):
        assert kept[query] + dropped[f"{STREAM}>{query}"] == reached
        if position == 1:
            assert kept[query] / COUNT == pytest.approx(part, abs=0.03)
    delivered = nodes[0][0].records.num_rows
    assert nodes[1][0].records.num_rows == reached
    # Of the records of query 20's tasks on node 0, and all that query 10 keeps.
    assert delivered / COUNT == pytest.approx(1 - position * 0.75, abs=0.035)
    assert list(nodes[0][0].newest_ms) == [777, 999]


def test_rules_of_an_earlier_ladder_are_of_the_queries_that_have_them() -> None:
    """Though the ladder has queries 10 and 11 in one class."""
    window = WindowDrop(STREAM, 10, 60_000, 60_000)
    table = table_of(ladder_of(PARTS))
    rule = DropRule(((-60_000, 1.0), (60_000, 0.0)), WINDOW_SEED, *window[2:])
    drops = drops_of(table, 0.0, {(STREAM, 10): rule})
    report, changes = processed(table, drops)
    assert "ladder_dropped" not in report
    assert counted(changes) == {11: COUNT, 12: COUNT, 13: COUNT}
    assert changes.ladder_dropped == {(STREAM, 10): COUNT}
    assert drops.tasks(table.tasks_of_node(0)).members[10].windows == ((STREAM, rule),)
    assert drops.tasks(table.tasks_of_node(0)).members[11].windows == ()


def test_windows_that_an_input_edge_drops_have_no_result() -> None:
    """Late records of such a window are kept by no rule: the node leaves the window out."""
    rule = DropRule(((0, 1.0),), WINDOW_SEED, 60_000, 60_000)
    windows = {(STREAM, INPUT): rule}
    table = table_of(ladder_of({}, WindowDrop(STREAM, INPUT, 60_000, 60_000)))
    report, changes = processed(table, drops_of(table, 1.0, windows))
    assert report["ladder_dropped"] == {str(STREAM): COUNT}
    members = drops_of(table, 1.0, windows).tasks(table.tasks_of_node(0)).members
    assert {member.windows for member in members.values()} == {((STREAM, rule),)}
    assert counted(changes) == {}


def test_the_header_of_a_batch_without_a_ladder_has_no_drops() -> None:
    table = table_of(ladder_of(PARTS))
    assert LadderDrops.of(None, table.ladder) is NO_DROPS
    assert not LadderDrops.of([0.0, 1.0, []], table.ladder)
    drops = LadderDrops.of([0.5, 1.0, []], table.ladder)
    assert drops.rule((STREAM, INPUT)) == DropRule.of(0.25, drops_seed(drops))
    assert drops.rule((STREAM, 13)) is None
    assert drops.rule((9, 13)) is None


def drops_seed(drops: LadderDrops) -> int:
    rule = drops.rule((STREAM, INPUT))
    assert rule is not None
    return rule.seed
