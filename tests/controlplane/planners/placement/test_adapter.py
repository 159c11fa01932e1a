"""A snapshot becomes a problem, a plan becomes the fewest moves and true measures."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from algorithms.errors import MissingDependency
from algorithms.lab.registry import PLACEMENT, algorithm, algorithms
from algorithms.placement.improve.search import fewest_moves_labels
from controlplane.errors import Conflict
from controlplane.planners.placement.adapter import ADAPTER, active_positions, placement_problem
from controlplane.planning.measures import measures
from controlplane.planning.resolution import resolve
from controlplane.plans.plan import task_moves
from controlplane.plans.snapshot import EMPTY, ClusterSnapshot


def snapshot(**changed: Any) -> ClusterSnapshot:
    """Return two streams (10/s, 1/s) and four queries on nodes 0, 1, 0, 1."""
    nodes = [{"index": i, "name": f"n{i}", "capacity": 100.0, "active": True} for i in (0, 1)]
    queries = [[1, "a", 0, [7]], [2, "b", 1, [7]], [3, "c", 0, [8]], [4, "d", 1, [8]]]
    rows = {"version": 3, "nodes": nodes, "streams": [[7, 10.0], [8, 1.0]], "queries": queries}
    return ClusterSnapshot.from_json(EMPTY.to_json() | rows | changed)


def planned(told: ClusterSnapshot, name: str, **parameters: Any) -> Any:
    """Return what the placement planner plans, as a plan, and its bounds."""
    chosen = algorithm(PLACEMENT, name)
    given = {"nu": told.nu} | parameters
    result = ADAPTER.plan_for(chosen.name, given, told, lambda share: None)
    return resolve(told, result.actions), result.bounds


def test_measures_count_each_stream_once_per_node() -> None:
    """Both streams go to both nodes: 22 records/s delivered of 11."""
    found = measures(snapshot())
    assert found["traffic"] == 22
    assert found["replication_factor"] == 2
    assert found["loads"] == [2, 2]
    assert found["rates"] == [11, 11]
    assert found["imbalance"] == 0


def test_the_best_plan_halves_the_traffic_with_two_moves() -> None:
    """Whichever way the algorithm numbers the servers."""
    plan, bounds = planned(snapshot(), "mms")
    assert measures(snapshot(), plan)["replication_factor"] == 1
    assert bounds == {"replication_factor": 1}
    assert len(plan) == 2


def test_labels_follow_the_largest_overlap() -> None:
    """A plan that is the present one with its servers renumbered moves nothing."""
    present = np.array([2, 2, 0, 0, 1])
    assignment = np.array([0, 0, 1, 1, 2])
    labels = fewest_moves_labels(present, assignment, np.arange(3), 3, np.ones(3))
    assert labels[assignment].tolist() == present.tolist()


def test_queries_of_an_inactive_node_move_to_active_ones() -> None:
    """It hosts nothing in the plan, and still counts in what is before."""
    told = snapshot()
    told = replace(told, nodes=[told.nodes[0], replace(told.nodes[1], active=False)])
    assert active_positions(told) == [0]
    plan, _ = planned(told, "mms")
    assert {(move.query, move.target) for move in task_moves(plan)} == {(2, 0), (4, 0)}
    assert measures(told, plan)["loads"] == [4, 0]


def test_only_servers_of_equal_capacity_exchange_their_names() -> None:
    """Servers 0 and 1 would exchange theirs if they were equal; 1 and 2 are."""
    present = np.array([1, 1, 1, 0, 2])
    assignment = np.array([0, 0, 0, 1, 1])
    found = fewest_moves_labels(present, assignment, np.arange(3), 3, np.array([10.0, 90.0, 90.0]))
    assert found[0] == 0
    assert sorted(found.tolist()) == [0, 1, 2]
    equal = fewest_moves_labels(present, assignment, np.arange(3), 3, np.ones(3))
    assert equal[0] == 1


def unequal(queries: int) -> ClusterSnapshot:
    """Return a snapshot of nodes of capacity 10 and 90 with half of the queries on each."""
    nodes = [
        {"index": 0, "name": "small", "capacity": 10.0, "active": True},
        {"index": 1, "name": "large", "capacity": 90.0, "active": True},
    ]
    return snapshot(
        nu=0.05,
        nodes=nodes,
        streams=[[stream, 1.0] for stream in range(queries)],
        queries=[
            [query, f"q{query}", query % 2, sorted({query, (query + 1) % queries})]
            for query in range(queries)
        ],
    )


@pytest.mark.parametrize("algorithm_name", [one.name for one in algorithms(PLACEMENT)])
def test_queries_follow_the_capacities(algorithm_name: str) -> None:
    """Of 40 queries about 4 and 36; no algorithm looks at the nodes they are on now."""
    chosen = algorithm(PLACEMENT, algorithm_name)
    told = unequal(40)
    if algorithm_name == "single_source":
        told = replace(
            told, queries=[query._replace(streams=query.streams[:1]) for query in told.queries]
        )
    fields = {field.name for field in chosen.parameters.fields()}
    settings = {"seconds": 1.0, "alpha": 0.0}
    given = {name: value for name, value in settings.items() if name in fields}
    try:
        plan, _ = planned(told, algorithm_name, **given)
    except MissingDependency:
        pytest.skip("the package of this algorithm is not installed")
    assert measures(told, plan)["loads"] == pytest.approx([4, 36], abs=2)


@pytest.mark.parametrize("nodes", [4, 9])
def test_few_queries_have_a_plan(nodes: int) -> None:
    """The paper's floor((1 + nu) n / k) leaves no place on any node."""
    told = snapshot(
        nu=0.05,
        queries=snapshot().queries[:3],
        nodes=[
            {"index": i, "name": f"n{i}", "capacity": 100.0, "active": True} for i in range(nodes)
        ],
    )
    plan, _ = planned(told, "mms")
    assert measures(told, plan)["max_load"] == 1
    assert placement_problem(told, nodes).caps.tolist() == [1] * nodes


@pytest.mark.parametrize("missing", ["queries", "nodes"])
def test_nothing_to_place_or_nowhere_is_told(missing: str) -> None:
    """Not a crash of the planner."""
    told = snapshot(**{missing: []})
    with pytest.raises(Conflict):
        placement_problem(told, len(active_positions(told)))
