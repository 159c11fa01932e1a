"""Ladders that the control plane computes, in the pipeline: loads and results as predicted."""

from dataclasses import replace

import pytest

from algorithms.shedding.lp import Lp
from algorithms.shedding.problem import SheddingProblem
from controlplane.planners.shedding.ladder import compute_ladder
from controlplane.planners.shedding.problem import network_of
from controlplane.plans.ladder_settings import SheddingSettings
from controlplane.wire.routing.cluster_actions import SetCapacity, SetLadder
from tests.support.ladders import input_ladder
from tests.support.shedding import SheddingCluster
from tests.workers.pipeline import test_ladder
from tests.workers.pipeline.test_ladder import FIRST, SECOND, STREAM, Cluster

cluster = test_ladder.cluster
CAPACITIES = (120.0, 60.0)
OVERLOAD = 300


def test_two_nodes_process_what_the_optimal_plan_keeps(cluster: Cluster) -> None:
    """Each node has a query of the stream; the smaller one is full first."""
    given = SheddingCluster(
        {STREAM: 50.0},
        [1 / capacity for capacity in CAPACITIES],
        frozenset({0, 1}),
        settings=SheddingSettings(max_factor=8.0, rungs=16, hold_s=8.0),
    )
    given.add(FIRST, [STREAM], [0]).add(SECOND, [STREAM], [1], weight=2.0)
    snapshot = given.snapshot()
    ladder = compute_ladder(snapshot)
    assert ladder is not None
    network = network_of(snapshot).problem.network
    rates = {f"stream {STREAM}": float(OVERLOAD)}
    optimum = Lp().solve(SheddingProblem(network, rates)).outcome
    cluster.pipeline.publish(
        *(SetCapacity(node, per_s, emulated=True) for node, per_s in enumerate(CAPACITIES)),
        SetLadder(ladder),
    )
    rows = [cluster.second(records) for records in [40] * 3 + [OVERLOAD] * 25]
    assert any(row["ladder_dropped"] for row in rows[3:5])
    steady = rows[13:]
    assert all(row["waiting"] < sum(CAPACITIES) for row in steady)
    taken = [sum(row["nodes"][node]["taken"] for row in steady) / len(steady) for node in (0, 1)]
    value = taken[0] + 2 * taken[1]
    assert value >= 0.95 * optimum.value
    for node, query in enumerate((FIRST, SECOND)):
        assert taken[node] == pytest.approx(optimum.results[f"query {query}"], rel=0.1)
    while cluster.second(0):
        pass
    assert cluster.rows[-1]["waiting"] == 0
    lost = cluster.dropped()
    for query in (FIRST, SECOND):
        edge = lost[f"{STREAM}>{query}"] + lost[str(STREAM)]
        assert cluster.counted(query) == cluster.appended - edge


def test_an_activated_rung_drops_without_an_overload(cluster: Cluster) -> None:
    ladder = input_ladder(STREAM, 1 / CAPACITIES[0], parts=(0.5, 0.25))
    cluster.pipeline.publish(SetLadder(ladder))
    for _ in range(3):
        assert cluster.second(40)["ladder_position"] == 0
    cluster.pipeline.publish(SetLadder(replace(ladder, least=1.0)))
    rows = [cluster.second(40) for _ in range(10)]
    assert {row["ladder_position"] for row in rows[1:]} == {1.0}
    assert sum(row["ladder_dropped"][str(STREAM)] for row in rows) == pytest.approx(200, rel=0.2)
    cluster.pipeline.publish(SetLadder(ladder))
    assert [cluster.second(40)["ladder_position"] for _ in range(3)][-1] == 0
