"""Nodes are added to a cluster and removed from it while it runs."""

import pytest

from controlplane.errors import Conflict
from controlplane.models import AuditEntry, Cluster, Node, Task
from controlplane.topology import aggregators, nodes
from controlplane.topology.rows import current_table
from tests.support.cluster import actor, placed, placed_split, replayed_table, small_cluster

pytestmark = pytest.mark.django_db


@pytest.fixture
def sf() -> Cluster:
    """A cluster of four nodes with a query on each of two."""
    operator = actor(name="setup")
    cluster = small_cluster(operator)
    placed(operator, cluster, {"q0": ["s0"], "q1": ["s1"]})
    return cluster


def test_new_nodes_take_the_weakest_capacity(sf: Cluster) -> None:
    """Nobody has measured them yet."""
    Node.objects.filter(index=1).update(capacity=300)
    nodes.set_count(actor(name="op"), sf, 6, "grows")
    sf.refresh_from_db()
    rows = list(Node.objects.order_by("index").values_list("index", "capacity", "active"))
    assert rows[4:] == [(4, 300.0, True), (5, 300.0, True)]
    assert sf.slots == 6
    entry = AuditEntry.objects.get(action="cluster.nodes")
    assert (entry.before, entry.after, entry.reason) == ({"nodes": 4}, {"nodes": 6}, "grows")


def test_nodes_that_go_must_be_off_and_empty(sf: Cluster) -> None:
    """A query that is placed there in between would have no node."""
    operator = actor(name="op")
    with pytest.raises(Conflict) as refusal:
        nodes.check_count(operator, sf, 2)
    assert refusal.value.code == "node_active"
    hosts = set(Node.objects.filter(tasks__isnull=False).values_list("index", flat=True))
    Node.objects.update(active=False)
    with pytest.raises(Conflict) as refusal:
        nodes.check_count(operator, sf, max(hosts))
    assert refusal.value.code == "node_hosts"
    nodes.set_count(operator, sf, max(hosts) + 1)
    sf.refresh_from_db()
    assert sf.slots == max(hosts) + 1
    assert current_table(sf.pk).node_count == max(hosts) + 1
    assert Node.objects.count() == 4, "samples speak of them"


def test_a_node_that_merges_stays(sf: Cluster) -> None:
    """Its tasks may be gone; what it keeps of open windows is not."""
    operator = actor(name="op")
    Node.objects.exclude(index=3).update(active=False)
    query = placed_split(operator, sf, key_grouping="key")
    Task.objects.update(node=Node.objects.get(index=0))
    Node.objects.update(active=False)
    with pytest.raises(Conflict) as refusal:
        nodes.check_count(operator, sf, 3)
    assert (refusal.value.code, refusal.value.data) == ("node_merges", {"queries": ["q"]})
    Node.objects.filter(index=0).update(active=True)
    aggregators.set_aggregator(operator, query, 0)
    Node.objects.update(active=False)
    nodes.check_count(operator, sf, 3)


def test_a_running_cluster_gets_nodes_by_a_routing_version(sf: Cluster) -> None:
    """Neither the driver nor its checkpoint has to know before."""
    Cluster.objects.update(desired="running", state="running")
    before = replayed_table(sf)
    assert before.node_count == 4
    nodes.set_count(actor(name="op"), sf, 7)
    after = replayed_table(sf)
    assert (after.version, after.node_count) == (before.version + 1, 7)
    assert after == current_table(sf.pk)
    assert after.queries == before.queries


def test_the_same_number_makes_no_version(sf: Cluster) -> None:
    version, by = current_table(sf.pk).version, actor(name="op")
    nodes.set_count(by, sf, 4)
    assert current_table(sf.pk).version == version
    Node.objects.filter(index=3).delete()
    nodes.set_count(by, sf, 4)
    assert (current_table(sf.pk).version, Node.objects.count()) == (version + 1, 4)
