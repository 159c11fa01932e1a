"""What a node emits leaves in rows of bounded size, and the sink puts each query together again."""

import os
from typing import Any

import pyarrow as pa
import pytest
import redis

from controlplane.wire import keys
from controlplane.wire.aggregates.state_schema import schema_named
from tests.support.sunk import report
from tests.support.whole_results import VARIABLE, results_database, rows_of
from tests.workers.pipeline.test_sink import FORM, publish_queries
from workers.pipeline.exchange import output, task_states
from workers.pipeline.exchange.blocks import unpack_tables
from workers.pipeline.exchange.output import NodeMeasures, NodeOutput, OutputRow, RowCollector
from workers.pipeline.sink import SinkWriter

# Windows of each query: two that fit together, one that is larger than a row, one of one window.
WINDOWS = {3: 40, 5: 30, 8: 2000, 9: 1}
LIMIT = 20_000
PAGES = {"page/0": b"x" * 30_000, "page/1": b"y" * 30_000}


def table() -> pa.Table:
    """Return windows of all queries, in no order."""
    rows: list[dict[str, Any]] = [
        {"query": query, "run": 0, "task": 0, "stream": 1, "pane": 60_000 * at, "k0": f"m-{at:06}",
         "s0": at + 1, "s1": at + 1, "s2": 7 * at}
        for query, count in WINDOWS.items() for at in range(count)
    ]  # fmt: skip
    rows.sort(key=lambda row: (str(row["k0"]), -row["query"]))
    return pa.Table.from_pylist(rows, schema_named(FORM).arrow)


def emitted(told: NodeMeasures) -> NodeOutput:
    """Return the output of a node with these windows, and a large and an empty state."""
    states = {(3, 0): PAGES, (5, 1): dict[str, bytes]()}
    return NodeOutput([(FORM, schema_named(FORM), table())], [], states, b"measured", told)


def row_of(piece: OutputRow) -> dict[str, Any]:
    return {"kind": piece.kind, "payload": piece.payload, "more": piece.more}


def test_rows_are_bounded_and_hold_whole_queries_or_a_part_of_one() -> None:
    rows = [one for one in emitted(report(4)).rows(LIMIT) if one.kind == output.RESULTS]
    assert len(rows) > 3
    # A header of names, and sizes that are estimated by rows: not far above the limit.
    assert max(len(one.payload) for one in rows) < 1.3 * LIMIT
    seen: dict[int, list[int]] = {}
    for at, piece in enumerate(rows):
        for _, table in unpack_tables(piece.payload):
            for query in set(table["query"].to_pylist()):
                seen.setdefault(query, []).append(at)
    assert [query for query, places in seen.items() if len(places) > 1] == [8]
    assert [at for at, piece in enumerate(rows) if piece.more] == seen[8][:-1]


def test_the_rows_together_are_what_was_changed() -> None:
    """Each query comes at once, with all of its windows in their order."""
    collector, found = RowCollector(), dict[int, list[Any]]()
    for piece in emitted(report(4)).rows(LIMIT):
        collector.take(row_of(piece))
        if piece.kind == output.RESULTS and (changes := collector.changes(row_of(piece))):
            for _, rows in changes:
                for query in sorted(set(rows["query"].to_pylist())):
                    assert query not in found, "written in one step"
                    found[query] = [r for r in rows.to_pylist() if r["query"] == query]
    assert found == {
        query: [row for row in table().to_pylist() if row["query"] == query] for query in WINDOWS
    }


def test_states_are_split_by_form_and_none_is_left_out() -> None:
    """A task without state is handed on, too."""
    groups = [
        task_states.unpack(piece.payload)
        for piece in emitted(report(4)).rows(LIMIT)
        if piece.kind == output.STATES
    ]
    assert [list(group) for group in groups] == [[(3, 0)], [(3, 0), (5, 1)]]
    assert {**groups[0][3, 0], **groups[1][3, 0]} == PAGES


def test_a_small_output_is_a_report_and_one_row_of_results() -> None:
    """Most batches are small: no row more than needed."""
    kinds = [piece.kind for piece in emitted(report(4)).rows(10**7)]
    assert kinds == ["report", "results", "states", "measures"]
    nothing = NodeOutput([], [], {}, b"", report(4))
    assert [piece.kind for piece in nothing.rows()] == ["report"]


@pytest.mark.parametrize("rows_per_batch", [1, 3, 100])
def test_the_sink_writes_rows_of_several_nodes(
    redis_client: "redis.Redis", redis_server: str, rows_per_batch: int
) -> None:
    """However Spark cuts them into batches; again, nothing changes."""
    publish_queries(redis_client, *WINDOWS)
    results_database().close()
    rows = [
        {"node": node, "batch": 4, **row_of(piece)}
        for node in (0, 2)
        for piece in emitted(report(4, node)).rows(LIMIT)
    ]
    batches = [
        pa.RecordBatch.from_pylist(rows[at : at + rows_per_batch])
        for at in range(0, len(rows), rows_per_batch)
    ]
    for _ in range(2):
        written = SinkWriter("c", redis_server, os.environ[VARIABLE]).write(iter(batches))
        assert [NodeMeasures.from_json(text).node for text in written.reports] == [0, 2]
    for query, count in WINDOWS.items():
        assert len(rows_of(query)) == count
    assert redis_client.hlen(keys.transfer_key("c", 4, 3, 0)) == 3, "a mark and two pages"
