"""The start and the end of scenarios, and their effects on the cluster."""

from datetime import timedelta

import pytest
from django.utils import timezone

from controlplane.clusters import scenarios
from controlplane.connections import redis_client as own_client
from controlplane.errors import Conflict, Invalid, NotFound
from controlplane.models import AuditEntry, Cluster, Scenario
from controlplane.wire import node_faults
from controlplane.wire.node_faults import LOST
from tests.support import cluster as made

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def cluster(redis_url: str) -> Cluster:
    """A running demo cluster of four nodes."""
    result = made.small_cluster(made.actor(name="a-maker"))
    result.demo, result.desired = "sf", Cluster.Desired.RUNNING
    result.save(update_fields=["demo", "desired"])
    return result


def faults(cluster: Cluster) -> dict[int, int]:
    now_ms = round(timezone.now().timestamp() * 1000)
    return dict(node_faults.active(own_client(), cluster.slug, now_ms))


def test_a_lost_node_is_a_fault_until_the_scenario_ends(cluster: Cluster) -> None:
    by = made.actor()
    row = scenarios.start_scenario(by, cluster, "node_lost", minutes=5, node=2)
    assert faults(cluster) == {2: LOST}
    assert row.ends_at - row.started_at == timedelta(minutes=5)
    assert scenarios.open_scenarios(cluster, timezone.now()) == [row]
    scenarios.end_scenario(by, row)
    assert faults(cluster) == {}
    assert scenarios.open_scenarios(cluster, timezone.now()) == []
    recorded = AuditEntry.objects.filter(cluster=cluster, action__startswith="scenario.")
    assert [entry.action for entry in recorded.order_by("id")] == [
        "scenario.start", "scenario.end",
    ]  # fmt: skip
    with pytest.raises(Conflict) as refusal:
        scenarios.end_scenario(by, row)
    assert refusal.value.code == "scenario_ended"


def test_a_slow_node_processes_a_third_of_its_capacity(cluster: Cluster) -> None:
    capacity = cluster.nodes.get(index=1).capacity
    scenarios.start_scenario(made.actor(), cluster, "slow_node", node=1)
    assert faults(cluster) == {1: pytest.approx(3e6 / capacity, rel=0.01)}


def test_an_added_node_is_removed_at_the_end(cluster: Cluster) -> None:
    by, before = made.actor(), cluster.slots
    row = scenarios.start_scenario(by, cluster, "node_added")
    cluster.refresh_from_db()
    assert (cluster.slots, row.node) == (before + 1, before)
    assert cluster.nodes.get(index=before).active
    scenarios.end_scenario(by, row)
    cluster.refresh_from_db()
    assert cluster.slots == before
    # The row of the removed node stays: a repetition activates it again.
    again = scenarios.start_scenario(by, cluster, "node_added")
    assert again.node == row.node
    assert cluster.nodes.get(index=before).active


def test_an_added_node_with_queries_stays_inactive(cluster: Cluster) -> None:
    by = made.actor()
    row = scenarios.start_scenario(by, cluster, "node_added")
    (query,) = made.placed(by, cluster, {"a": ["s0"]})
    assert row.node is not None
    node = cluster.nodes.get(index=row.node)
    query.tasks.update(node=node)
    ended = scenarios.end_scenario(by, row)
    node.refresh_from_db()
    assert not node.active
    assert "queries" in ended.note


def test_scenarios_end_when_their_time_is_over(cluster: Cluster) -> None:
    row = scenarios.start_scenario(made.actor(), cluster, "node_lost", minutes=1, node=0)
    own_client().flushall()
    scenarios.reconcile_scenarios(row.ends_at - timedelta(seconds=30))
    assert faults(cluster) == {0: LOST}, "stored again after a loss of Redis"
    scenarios.reconcile_scenarios(row.ends_at)
    row.refresh_from_db()
    assert (row.ended_at, row.ended_by) == (row.ends_at, "weir")
    assert faults(cluster) == {}


@pytest.mark.parametrize(
    ("kind", "minutes", "node", "code"),
    [
        ("slow_node", 5, 9, "no_such_node"),
        ("rush_hour", 0, None, "minutes"),
        ("rush_hour", 61, None, "minutes"),
        ("slow_node", 5, None, "no_such_node"),
    ],
)
def test_what_cannot_start_is_refused(
    cluster: Cluster, kind: str, minutes: int, node: int | None, code: str
) -> None:
    with pytest.raises((Conflict, Invalid)) as refusal:
        scenarios.start_scenario(made.actor(), cluster, kind, minutes=minutes, node=node)
    error = refusal.value
    assert code in (getattr(error, "code", ""), *getattr(error, "fields", {}))
    assert not Scenario.objects.exists()


def test_running_demos_are_disturbed_once(cluster: Cluster) -> None:
    by = made.actor()
    with pytest.raises(NotFound):
        scenarios.start_scenario(by, cluster, "earthquake")
    scenarios.start_scenario(by, cluster, "rush_hour")
    with pytest.raises(Conflict) as refusal:
        scenarios.start_scenario(by, cluster, "rush_hour")
    assert refusal.value.code == "scenario_active"
    for changed, code in (({"demo": ""}, "not_a_demo"), ({"desired": "stopped"}, "not_running")):
        Cluster.objects.filter(pk=cluster.pk).update(demo="sf", desired="running")
        Cluster.objects.filter(pk=cluster.pk).update(**changed)
        cluster.refresh_from_db()
        with pytest.raises(Conflict) as refusal:
            scenarios.start_scenario(by, cluster, "hot_key")
        assert refusal.value.code == code


def test_ended_scenarios_are_deleted_after_90_days(cluster: Cluster) -> None:
    by, now = made.actor(), timezone.now()
    old = scenarios.start_scenario(by, cluster, "rush_hour")
    scenarios.end_scenario(by, old)
    running = scenarios.start_scenario(by, cluster, "hot_key")
    assert scenarios.prune(now + timedelta(days=89)) == 0
    assert scenarios.prune(now + timedelta(days=91)) == 1
    assert list(Scenario.objects.all()) == [running]
    later = running.ends_at + timedelta(minutes=1)
    assert scenarios.scenarios_between(cluster, now, later) == [running]
    assert scenarios.scenarios_between(cluster, later, later + timedelta(hours=1)) == []
