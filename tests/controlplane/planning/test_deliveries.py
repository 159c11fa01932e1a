"""Predicted deliveries: each record once per node, also where tasks of split queries need it."""

import pytest

from controlplane.planning.effects import effects
from controlplane.planning.load_model import LoadModel
from controlplane.planning.measures import measures
from controlplane.plans.plan import TaskMove
from controlplane.plans.snapshot import ClusterSnapshot, NodeRow, QueryRow, SplitQueryRow, StreamRow

# Query 9: task 0 on node 0 has half of the records, tasks 1 and 2 on node 1 a quarter each.
SPLIT = SplitQueryRow(9, "split", [[0, 0, 1], [1, 1, 3]], [2.0, 1.0, 1.0], [0, 0, 0], [1, 2])

TWIN = SPLIT._replace(id=8, name="twin")


def snapshot(*split: SplitQueryRow, whole: int = 0) -> ClusterSnapshot:
    """Return three nodes; query 1 reads stream 1 on the node `whole`, stream 2 has no such."""
    return ClusterSnapshot(
        1, 1.0, [NodeRow(index, f"n{index}", 100.0, active=True) for index in range(3)],
        [StreamRow(1, 100.0), StreamRow(2, 50.0)], [QueryRow(1, "a", whole, [1])], {},
        list(split), [],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("moves", "loads"),
    [
        # Node 0 receives stream 1 anyway, and half of stream 2; node 1 half of both.
        ([], [100 + 25, 50 + 25, 0]),
        ([TaskMove(1, 0, 0, 1, 0)], [50 + 25, 100 + 25, 0]),
        ([TaskMove(9, 0, 0, 2, 0)], [100, 50 + 25, 50 + 25]),
        ([TaskMove(9, 0, 0, 1, 0)], [100, 100 + 50, 0]),
    ],
)
def test_a_task_adds_what_its_node_does_not_receive_anyway(
    moves: list[TaskMove], loads: list[float]
) -> None:
    found = measures(snapshot(SPLIT), moves)
    assert found["rates"] == pytest.approx(loads)
    assert found["replication_factor"] == pytest.approx(sum(loads) / 150)


def test_records_that_tasks_of_two_queries_need_come_once() -> None:
    """Of independent keys a node gets the union; of all records no more than the stream."""
    loads = measures(snapshot(SPLIT, TWIN, whole=2))["rates"]
    assert loads == pytest.approx([0.75 * 150, 0.75 * 150, 100])
    gathered = SPLIT._replace(id=8, ranges=[[1, 0, 3]])
    assert measures(snapshot(SPLIT, gathered, whole=2))["rates"] == pytest.approx([75, 150, 100])


def test_tasks_that_are_not_measured_share_evenly() -> None:
    found = measures(snapshot(SPLIT._replace(work=[0.0] * 3)))
    assert found["rates"] == pytest.approx([100 + 50 / 3, 150 * 2 / 3, 0])


def test_a_stored_snapshot_has_the_streams_of_split_queries() -> None:
    stored = ClusterSnapshot.from_json(snapshot(SPLIT).to_json())
    assert LoadModel.of(stored).loads.tolist() == LoadModel.of(snapshot(SPLIT)).loads.tolist()
    assert stored.split[0].streams == [1, 2]


@pytest.mark.parametrize("node", [1, 2])
def test_what_a_query_of_one_task_adds_is_the_change_of_the_loads(node: int) -> None:
    model = LoadModel.of(snapshot(SPLIT, TWIN))
    after = model.with_moves([TaskMove(1, 0, 0, node, 0)])
    assert after.loads[node] - model.loads[node] == pytest.approx(model.added_to(0, node))
    assert model.loads[0] - after.loads[0] == pytest.approx(model.removed_from(0, 0))


@pytest.mark.parametrize("task", [0, 1])
@pytest.mark.parametrize("node", [0, 1, 2])
def test_the_effect_of_a_task_beside_those_of_another_query_is_that_of_the_measures(
    task: int, node: int
) -> None:
    """Of the union of two queries, the last to leave takes less than its part with it."""
    given, moves = snapshot(SPLIT, TWIN, whole=2), [TaskMove(9, task, min(task, 1), node, 0)]
    (found,) = effects(given, moves)
    now, after = measures(given), measures(given, moves)
    factor = now["replication_factor"] - after["replication_factor"]
    assert found.replication_factor == pytest.approx(factor, abs=1e-6)
    assert found.imbalance == pytest.approx(now["imbalance"] - after["imbalance"], abs=1e-6)


def test_a_model_without_a_split_query_has_the_loads_of_the_others() -> None:
    given = LoadModel.of(snapshot(SPLIT, TWIN, whole=2)).without(8)
    assert given.loads.tolist() == LoadModel.of(snapshot(SPLIT, whole=2)).loads.tolist()
