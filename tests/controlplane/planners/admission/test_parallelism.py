"""Numbers of tasks and aggregator nodes of the queries of a snapshot."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given as drawn_from
from hypothesis import strategies as st

from algorithms.admission.scaling import LatencyTooShort, Parallelism
from controlplane.errors import Conflict
from controlplane.planners.admission.inputs import (
    AdmissionInput,
    AdmittedStream,
    AggregatedQuery,
    MeasuredCosts,
)
from controlplane.planners.admission.parallelism import QUERY_OVERLOAD, plan_parallelism
from controlplane.planners.admission.problem import Outlook
from controlplane.planning.load_model import LoadModel
from controlplane.planning.resolution import resolve
from controlplane.plans.snapshot import (
    ClusterSnapshot,
    Excluded,
    GroupingRow,
    NodeRow,
    QueryRow,
    SplitQueryRow,
    StreamRow,
)
from controlplane.wire.query_text import MAX_TASKS
from controlplane.wire.routing.actions import Action
from controlplane.wire.routing.query_actions import SetAggregators, SetTaskCount

QUERY, OTHER, JOIN, PLAIN = 1, 2, 3, 4
# A node processes 900 records/s with head-room.
COSTS = MeasuredCosts(operator_s=0.001, merge_s=0.0001, partials_per_record=0.5)


def snapshot(rate: float, tasks: int = 4, **changed: Any) -> ClusterSnapshot:
    """Return eight nodes, of which node 7 is inactive, and a query that reads streams 1 and 2.

    Stream 1 has half of the rate, stream 2 the other half. A query of few records, a join and a
    query without an aggregator node stay.
    """
    ranges = [[task % 4, task, task + 1] for task in range(tasks)]
    return replace(
        ClusterSnapshot(
            version=1, nu=0.1,
            nodes=[NodeRow(i, f"n{i}", 1_000.0, i != 7) for i in range(8)],
            streams=[StreamRow(1, rate / 2), StreamRow(2, rate / 2), StreamRow(3, 10.0),
                     StreamRow(9, 10.0)],
            queries=[QueryRow(5, "whole", 4, [9])],
            state={},
            split=[
                SplitQueryRow(QUERY, "q", ranges, [rate / tasks] * tasks, [0] * tasks, [1, 2]),
                SplitQueryRow(OTHER, "few", [[0, 0, 1], [1, 1, 2]], [5.0, 5.0], [0, 0], [3]),
                SplitQueryRow(JOIN, "join", [[0, 0, 1], [1, 1, 2]], [5.0, 5.0], [0, 0], [1, 2]),
                SplitQueryRow(PLAIN, "plain", [[0, 0, 1], [1, 1, 2]], [5.0, 5.0], [0, 0], [3]),
            ],
            excluded=[],
            groupings=[GroupingRow(QUERY, "", 0), GroupingRow(OTHER, "", 0),
                       GroupingRow(JOIN, "", 0, joins=True)],
            splits={1: 0, 2: 0, 3: 0, 9: 0},
            inputs={"admission": given(rate)},
        ),
        **changed,
    )  # fmt: skip


def given(rate: float, costs: MeasuredCosts = COSTS, interval_s: float = 1.0) -> AdmissionInput:
    rates = {1: rate / 2, 2: rate / 2, 3: 10.0}
    streams = [AdmittedStream(id_, f"s{id_}", [r] * 20, {}, {}) for id_, r in rates.items()]
    queries = [AggregatedQuery(QUERY, [1, 2]), AggregatedQuery(OTHER, [3]),
               AggregatedQuery(JOIN, [1, 2])]  # fmt: skip
    return AdmissionInput(10, 0.0, {}, streams, interval_s, costs, queries)


def plan(value: ClusterSnapshot, **parameters: float) -> list[Action]:
    """Return the actions, which the snapshot must allow."""
    actions = plan_parallelism(value, Parallelism(**parameters), Outlook())
    assert len(resolve(value, actions)) == len(actions)
    return actions


def overload(value: ClusterSnapshot, actions: Sequence[Action] = ()) -> float | None:
    planned = tuple(resolve(value, actions))
    result: float | None = QUERY_OVERLOAD.compute(value, LoadModel.of(value), planned)
    return result


def test_enough_tasks_stay() -> None:
    """Two tasks suffice for 1,800 records/s, and four are not more than twice as many."""
    assert plan(snapshot(1_800)) == []


def test_new_tasks_are_on_the_least_loaded_other_nodes() -> None:
    """Nodes 0 to 3 have a task each, and node 4 a query of one task."""
    value = snapshot(5_400)
    assert plan(value) == [SetTaskCount(QUERY, 6, ((5, 4, 5), (6, 5, 6)))]
    assert overload(value) == pytest.approx(1_800)
    assert overload(value, plan(value)) == 0


def test_tasks_share_nodes_if_there_are_more_than_nodes() -> None:
    (action,) = plan(snapshot(9_900))
    assert isinstance(action, SetTaskCount)
    hosts = Counter(node for node, first, stop in action.added for _ in range(first, stop))
    assert (action.tasks, sum(hosts.values()), set(hosts) & {7}) == (11, 7, set())
    assert {4, 5, 6} <= set(hosts)


def test_far_too_many_tasks_become_as_many_as_needed() -> None:
    assert plan(snapshot(1_800, tasks=5)) == [SetTaskCount(QUERY, 2)]
    assert plan(snapshot(0, tasks=5)) == [SetTaskCount(QUERY, 2)]


def test_the_number_of_tasks_is_limited() -> None:
    (action, *_) = plan(snapshot(1e9, inputs={"admission": given(1e9, MeasuredCosts(0.001))}))
    assert isinstance(action, SetTaskCount)
    assert action.tasks == MAX_TASKS


def test_aggregator_nodes_follow_the_partial_results() -> None:
    """Six query nodes emit 500 partial results/s each, of which a node merges 900."""
    costs = replace(COSTS, merge_s=0.001)
    value = snapshot(5_400, tasks=6, inputs={"admission": given(5_400, costs)})
    (action,) = plan(value)
    assert isinstance(action, SetAggregators)
    assert (action.query, action.nodes[0], len(set(action.nodes))) == (QUERY, 0, 4)
    assert 7 not in action.nodes


def test_aggregator_nodes_are_as_many_as_active_nodes_at_most() -> None:
    costs = replace(COSTS, merge_s=1.0)
    actions = plan(snapshot(5_400, tasks=6, inputs={"admission": given(5_400, costs)}))
    assert [sorted(a.nodes) for a in actions if isinstance(a, SetAggregators)] == [
        list(range(7)), list(range(7)),
    ]  # fmt: skip


def test_far_too_many_aggregator_nodes_become_as_many_as_needed() -> None:
    groupings = [GroupingRow(QUERY, "", 3, more_aggregators=(5, 1))]
    assert plan(snapshot(1_800, groupings=groupings)) == [SetAggregators(QUERY, (3,))]
    unknown = given(1_800, MeasuredCosts(0.001))
    assert plan(snapshot(1_800, groupings=groupings, inputs={"admission": unknown})) == []


@pytest.mark.parametrize(
    "excluded",
    [Excluded("query", "q"), Excluded("stream", 2)],
)
def test_excluded_queries_and_streams_stay(excluded: Excluded) -> None:
    assert plan(snapshot(5_400, excluded=[excluded])) == []


def test_excluded_nodes_neither_get_nor_lose_anything() -> None:
    (action,) = plan(snapshot(5_400, excluded=[Excluded("node", "n5")]))
    assert isinstance(action, SetTaskCount)
    assert {node for node, _, _ in action.added} == {4, 6}
    assert plan(snapshot(1_800, tasks=5, excluded=[Excluded("node", "n2")])) == []
    every = [Excluded("node", f"n{i}") for i in range(8)]
    assert plan(snapshot(5_400, excluded=every)) == []
    groupings = [GroupingRow(QUERY, "", 3, more_aggregators=(5, 1))]
    value = snapshot(1_800, groupings=groupings, excluded=[Excluded("node", "n1")])
    assert plan(value) == []


def test_without_measured_costs_there_is_no_plan() -> None:
    value = snapshot(5_400, inputs={"admission": given(5_400, MeasuredCosts())})
    with pytest.raises(Conflict) as refused:
        plan(value)
    assert refused.value.code == "no_costs"
    assert overload(value) is None
    assert plan(replace(value, split=value.split[2:])) == [], "no query can change"


def test_a_latency_bound_demands_more_tasks() -> None:
    """Batches of 4 s with a bound of 6 s: nodes are busy for half of their time."""
    value = snapshot(3_000, inputs={"admission": given(3_000, interval_s=4.0)})
    assert plan(value) == []
    (action,) = plan(value, latency_s=6.0)
    assert isinstance(action, SetTaskCount)
    assert action.tasks == 6
    with pytest.raises(LatencyTooShort):
        plan(value, latency_s=4.0)


@drawn_from(st.floats(0, 2e4), st.integers(2, 12), st.floats(0, 0.01), st.floats(0, 2))
def test_a_plan_suffices_and_the_next_one_is_empty(
    rate: float, tasks: int, merge_s: float, partials: float
) -> None:
    costs = MeasuredCosts(0.001, merge_s, partials)
    value = snapshot(rate, tasks, inputs={"admission": given(rate, costs)})
    actions = plan(value)
    assert overload(value, actions) == pytest.approx(0, abs=1e-6)
    after = dict.fromkeys((QUERY, OTHER), 2) | {QUERY: tasks}
    groupings = {row.query: row for row in value.groupings}
    for action in actions:
        if isinstance(action, SetTaskCount):
            after[action.query] = action.tasks
        elif isinstance(action, SetAggregators):
            first, *more = action.nodes
            groupings[action.query] = GroupingRow(action.query, "", first, more_aggregators=more)
    rows = [row if row.id not in after else _with_tasks(row, after[row.id]) for row in value.split]
    assert plan(replace(value, split=rows, groupings=list(groupings.values()))) == []


def _with_tasks(row: SplitQueryRow, tasks: int) -> SplitQueryRow:
    ranges = [[task % 7, task, task + 1] for task in range(tasks)]
    work = np.full(tasks, sum(row.work) / tasks).tolist()
    return row._replace(ranges=ranges, work=work, state=[0] * tasks)
