"""Plans of migration: tasks go where the other tasks of the cluster leave room."""

from dataclasses import replace

import numpy as np
import pytest

from algorithms.balance import imbalance
from controlplane.planners.migration.adapter import ADAPTER
from controlplane.planning.load_model import LoadModel
from controlplane.planning.resolution import resolve
from controlplane.plans.snapshot import ClusterSnapshot, NodeRow, QueryRow, SplitQueryRow, StreamRow


def snapshot(busy: float, *, active: bool = True) -> ClusterSnapshot:
    """Two nodes with a query of one task each, whose stream has `busy` records/s, and two empty.

    A query of eight tasks of 10 records/s each is on the first two nodes.
    """
    return ClusterSnapshot(
        1,
        0.1,
        [NodeRow(index, f"node {index}", 100.0, index < 3 or active) for index in range(4)],
        [StreamRow(1, busy), StreamRow(2, 80.0)],
        [QueryRow(1, "a", 0, [1]), QueryRow(2, "b", 1, [1])],
        {},
        [SplitQueryRow(3, "by-key", [[0, 0, 4], [1, 4, 8]], [10.0] * 8, [100] * 8, [2])],
        [],
    )


def after(given: ClusterSnapshot, tau: float = 0.1) -> LoadModel:
    plan = ADAPTER.plan_for("single_step", {"tau": tau}, given, lambda _: None)
    return LoadModel.of(given).after(resolve(given, plan.actions))


@pytest.mark.parametrize(("busy", "on_first"), [(0.0, 20.0), (20.0, 10.0), (50.0, 0.0)])
def test_nodes_that_return_take_tasks_by_the_room_of_all_nodes(
    busy: float, on_first: float
) -> None:
    given = snapshot(busy)
    model = after(given)
    before = LoadModel.of(given)
    assert model.loads.sum() == pytest.approx(before.loads.sum())
    assert model.loads[0] - busy == pytest.approx(on_first)
    assert imbalance(model.loads / model.capacities) < imbalance(before.loads / before.capacities)


def test_inactive_nodes_take_no_task() -> None:
    loads = after(snapshot(50.0, active=False)).loads
    assert np.array_equal(loads[[0, 1, 3]] > 0, [True, True, False])


def test_tasks_stay_where_their_records_arrive_anyway() -> None:
    given = snapshot(0.0)
    read_all = [query._replace(streams=[2]) for query in given.queries]
    model = after(replace(given, queries=read_all))
    assert model.loads.tolist() == [80.0, 80.0, 0.0, 0.0]


def test_more_uneven_work_leaves_more_tasks_where_they_are() -> None:
    """The first two nodes receive a fifth of the records anyway."""
    streams = [StreamRow(1, 16.0), StreamRow(2, 64.0)]
    given = replace(snapshot(0.0), streams=streams)
    split = [query._replace(streams=[1, 2]) for query in given.split]
    factors = [
        after(replace(given, split=split), tau).replication_factor for tau in (0.1, 0.2, 0.8)
    ]
    assert factors == [pytest.approx(1.35), pytest.approx(1.3), pytest.approx(1.2)]
