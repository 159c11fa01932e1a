"""What placement reaches is computed seldom, in workers, and limits follow from it."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from algorithms.placement.improve import Goal, Improve
from controlplane.access.roles import Actor
from controlplane.models import Cluster, ReachableMeasures
from controlplane.planners.placement.improvement import improve_problem, moves_of
from controlplane.planners.placement.loop import replication_reading
from controlplane.planners.placement.reachable import (
    compute_reachable,
    is_due,
    reach,
    request_if_due,
)
from controlplane.planning.load_model import LoadModel
from controlplane.planning.measures import measures
from controlplane.planning.resolution import resolve
from controlplane.planning.snapshots import take_snapshot
from controlplane.plans.snapshot import ClusterSnapshot, NodeRow, SplitQueryRow, StreamRow
from controlplane.policies.measure_limits import cluster_limits
from controlplane.policies.settings import PolicySettings
from tests.controlplane.planning.drawn import drawn
from tests.support.cluster import placed_split
from tests.support.execution import scattered
from tests.support.watching import looked, reachable, sample

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis_url")]
POLICY = PolicySettings()


def test_it_is_that_of_the_best_placement(operator: Actor, sf: Cluster) -> None:
    """Three streams, each delivered to all four nodes; one node each could do."""
    cluster = scattered(operator, sf)
    assert "replication_factor" not in cluster_limits(cluster, POLICY)
    compute_reachable(cluster.pk)
    row = ReachableMeasures.objects.get(cluster=cluster)
    assert 1.0 <= row.replication_factor < 4.0
    assert row.version == cluster.routing_version
    limit = cluster_limits(cluster, POLICY)["replication_factor"]
    assert limit == pytest.approx(1.2 * row.replication_factor)


@pytest.mark.parametrize("goal", list(Goal))
def test_a_plan_reaches_what_its_search_measured(goal: Goal) -> None:
    """Also where tasks of a split query move, and streams come to nodes with tasks and leave."""
    snapshot = drawn(3)
    model = LoadModel.of(snapshot)
    problem = improve_problem(snapshot, model)
    plan = Improve(goal=goal.value).solve(problem)
    moves = moves_of(model, problem.present, plan.assignment)
    after = measures(snapshot, resolve(snapshot, moves))
    reached = [after["replication_factor"], after["imbalance"], after["fullest"]]
    assert reached == pytest.approx(list(plan.measured))


def test_what_is_reached_with_two_split_queries_is_by_the_model_of_loads() -> None:
    """All of a stream is on a node that is too full. Two nodes with halves need 1.5 copies."""
    split = [
        SplitQueryRow(query, f"q{query}", [[0, 0, 2]], [1.0, 1.0], [0, 0], [1]) for query in (8, 9)
    ]
    nodes = [NodeRow(index, f"n{index}", 90.0, active=True) for index in range(2)]
    given = ClusterSnapshot(1, 1.0, nodes, [StreamRow(1, 100.0)], [], {}, split, [])
    reached = reach(given, lambda _: None)
    assert measures(given)["replication_factor"] == pytest.approx(1.0)
    assert reached.replication > 1.49, "the search takes it for 1.0"
    assert reached.fullest > 74 / 90


def test_the_limit_is_of_all_deliveries(operator: Actor, sf: Cluster) -> None:
    """Tasks of a split query are on every node; placement reaches less than what runs."""
    cluster = scattered(operator, sf)
    placed_split(operator, cluster)
    compute_reachable(cluster.pk)
    row = ReachableMeasures.objects.get(cluster=cluster)
    assert row.replication_factor >= 1.0
    snapshot = take_snapshot(cluster.pk, cluster.nu)
    assert row.replication_factor < measures(snapshot)["replication_factor"]


def test_of_an_empty_cluster_there_is_none(operator: Actor, sf: Cluster) -> None:
    compute_reachable(sf.pk)
    assert not ReachableMeasures.objects.exists()
    compute_reachable(sf.pk + 1)


def test_it_is_computed_again_after_changes_and_after_a_while(sf: Cluster) -> None:
    row, cluster, now = reachable(sf, 1.5), sf, timezone.now()
    row.computed_at, row.version = now, cluster.routing_version
    ages = (59, 61, 599, 601)
    assert [is_due(cluster, row, now + timedelta(seconds=age)) for age in ages] == [
        False, False, False, True,
    ]  # fmt: skip
    cluster.routing_version += 1
    assert [is_due(cluster, row, now + timedelta(seconds=age)) for age in ages[:2]] == [False, True]
    row.took_s = 10.0
    assert not is_due(cluster, row, now + timedelta(seconds=999)), "a hundredth of the time"
    assert is_due(cluster, None, now)


def test_workers_are_requested_once(sf: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []
    monkeypatch.setattr(
        "controlplane.planners.placement.snapshot_work.send_on_commit",
        lambda name, cluster, **_: sent.append(cluster),
    )
    now = timezone.now()
    request_if_due(sf, now)
    assert not sent, "it is stopped"
    sf.desired = Cluster.Desired.RUNNING
    request_if_due(sf, now)
    request_if_due(sf, now)
    assert sent == [sf.pk]


def test_the_loop_compares_with_the_limit(sf: Cluster) -> None:
    row = reachable(sf, 1.5)
    samples = [sample(at, rf=1.9) for at in range(20)]
    above = looked(samples=samples, reachable=row)
    reading = replication_reading(above)
    assert reading.number == pytest.approx(1.9)
    assert reading.trouble
    assert reading.limit == pytest.approx(1.8)
    assert reading.text.endswith("1.90, limit 1.80 (20 % above the best reachable 1.50)")
    split = looked(samples=samples, reachable=row, split_queries=3)
    assert replication_reading(split).number == pytest.approx(1.9), "all deliveries count"
    assert replication_reading(looked()).number is None, "not computed yet"
    assert replication_reading(looked(samples=[], reachable=row)).number is None
