"""Routing that an earlier release published is read as routing of this one."""

import json

from controlplane.wire.query import computation_of
from controlplane.wire.query_text import QueryText
from controlplane.wire.routing.table import RoutingDelta, RoutingTable
from tests.support.schemas import REPORTS
from tests.support.texts import SUMMARY_TEXT

TEXT = '{"aggregates":{"n":"count(*)"},"key":["car"]}'
OLD_OPS = [
    {"op": "stream", "stream": 1, "split": 0},
    {"op": "add", "query": 5, "run": 0, "node": 2, "streams": [1], "window_s": 60, "value": "x"},
    {"op": "add", "query": 6, "run": 1, "node": 0, "streams": [1], "window_s": 60, "value": "",
     "text": TEXT, "spans": [[0, 0, 1], [1, 1, 2]]},
]  # fmt: skip
OLD_TABLE = {
    "version": 7,
    "queries": [
        [5, 0, 2, [1], 90, "x"],
        [6, 1, 0, [1], 60, "", TEXT, [[0, 0, 1], [1, 1, 2]], '{"kind":"two_choices"}', 3],
    ],
    "splits": [[1, 0]],
    "capacities": [],
    "sheds": [],
}


def computes(text: str, window_s: float) -> bool:
    """Return whether a text computes what the earlier release did of column x."""
    summary = QueryText.from_json(json.loads(SUMMARY_TEXT.replace("speed", "x")))
    wanted = QueryText(summary.aggregates, window_s=window_s, key=["stream"])
    found = QueryText.from_json(json.loads(text))
    return computation_of(found, REPORTS.kinds) == computation_of(wanted, REPORTS.kinds)


def test_a_delta_of_an_earlier_release() -> None:
    delta = RoutingDelta.from_json(json.dumps({"version": 1, "ops": OLD_OPS}))
    table = RoutingTable().apply(delta)
    assert computes(table.queries[5].text, 60)
    assert (table.queries[5].node, table.queries[5].streams) == (2, (1,))
    assert (table.queries[6].text, table.queries[6].owners()) == (TEXT, (0, 1))
    assert RoutingDelta.from_json(delta.to_json()) == delta


def test_a_snapshot_without_a_capacity_of_split_nodes() -> None:
    row = json.loads(RoutingTable(3, split_count=2, node_count=4).to_json())
    del row["split_capacity"], row["split_emulated"]
    assert RoutingTable.from_json(json.dumps(row)) == RoutingTable(3, split_count=2, node_count=4)


def test_a_snapshot_of_an_earlier_release() -> None:
    table = RoutingTable.from_json(json.dumps(OLD_TABLE))
    assert computes(table.queries[5].text, 90)
    split = table.queries[6]
    assert (split.text, split.owners(), split.aggregator) == (TEXT, (0, 1), 3)
    assert split.key_grouping == '{"kind":"two_choices"}'
    assert RoutingTable.from_json(table.to_json()) == table
