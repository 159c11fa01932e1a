"""The loads that plans predict are those that split nodes deliver."""

import json

import pytest

from controlplane.planning.measures import measures
from controlplane.plans.snapshot import ClusterSnapshot, NodeRow, QueryRow, SplitQueryRow, StreamRow
from controlplane.wire.query_text import QueryText
from controlplane.wire.routing.cluster_actions import AssignStream
from controlplane.wire.routing.query_actions import AddQuery
from tests.support.tables import compiled
from tests.support.texts import SUMMARY_TEXT
from tests.workers.pipeline.split_nodes.test_dispatch import entry
from workers.pipeline.split_nodes.dispatch import dispatch, source_report

TEXT = json.dumps(QueryText({"n": "count(*)"}, key=["car"]).to_json())
CARS = range(500)
# As many records of each stream as records/s; stream 3 has no query.
ENTRIES = {stream: [entry(f"{stream}-0", *CARS)] for stream in (1, 2, 3)}
STREAMS = [AssignStream(stream, 0) for stream in ENTRIES]
TASKS, NODES = 6, 4


def received(*queries: AddQuery, nodes: int) -> tuple[list[int], int]:
    """Return the records that each node receives, and those read of streams with queries."""
    table = compiled(*STREAMS, *queries)
    envelopes = dispatch(ENTRIES, table, nodes, {}).envelopes
    counts = [sum(one.records.num_rows for one in of_node) for of_node in envelopes]
    return counts, source_report(0, ENTRIES, table)["read"]


@pytest.mark.parametrize("home", range(NODES))
def test_nodes_receive_what_the_model_predicts(home: int) -> None:
    """A query of one task reads stream 1 at each node in turn; tasks are on three of the nodes."""
    alone = AddQuery(9, 0, 0, (1, 2), TEXT, tuple((task, task, task + 1) for task in range(TASKS)))
    work, _ = received(alone, nodes=TASKS)
    assert len(set(work)) > 1
    ranges = ((0, 0, 1), (1, 1, 4), (2, 4, TASKS))
    split = AddQuery(9, 0, 0, (1, 2), TEXT, ranges)
    measured, read = received(split, AddQuery(1, 0, home, (1,), SUMMARY_TEXT), nodes=NODES)
    snapshot = ClusterSnapshot(
        1, 1.0, [NodeRow(index, f"n{index}", 1e4, active=True) for index in range(NODES)],
        [StreamRow(1, len(CARS)), StreamRow(2, len(CARS))], [QueryRow(1, "a", home, [1])], {},
        [SplitQueryRow(9, "b", list(map(list, ranges)), list(map(float, work)), [0] * TASKS,
                       [1, 2])], [],
    )  # fmt: skip
    predicted = measures(snapshot)
    assert predicted["rates"] == pytest.approx(measured)
    assert predicted["replication_factor"] == pytest.approx(sum(measured) / read)
