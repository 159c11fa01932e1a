"""Capacities: declared, and emulated by a routing version."""

import pytest

from controlplane.access.roles import Actor
from controlplane.connections import redis_client
from controlplane.errors import Invalid
from controlplane.models import AuditEntry, Cluster, Task
from controlplane.topology import nodes
from controlplane.topology.rows import current_table
from controlplane.wire.routing.publication import latest_version, read_table
from tests.support.cluster import placed, replayed_table

pytestmark = pytest.mark.django_db(transaction=True)


def published(cluster: Cluster) -> dict[int, float]:
    """Return the capacities that the pipeline is told."""
    version = latest_version(redis_client(), cluster.slug)
    assert version is not None
    return dict(read_table(redis_client(), cluster.slug, version).capacities)


def test_a_node_is_held_to_its_capacity_while_it_is_emulated(operator: Actor, sf: Cluster) -> None:
    """What is decided in the database is what the pipeline reads; the whole table has it, too."""
    node = sf.nodes.get(index=1)
    nodes.configure(operator, node, "slow", capacity=300.0, emulated=True)
    assert published(sf) == {1: 300.0} == current_table(sf.pk).capacities
    nodes.configure(operator, node, capacity=200.0)
    assert published(sf) == {1: 200.0}, "a node stays as it is unless it is said"
    nodes.configure(operator, node, capacity=200.0, emulated=False)
    assert published(sf) == {} == current_table(sf.pk).capacities


def test_a_declared_capacity_does_not_limit_the_pipeline(operator: Actor, sf: Cluster) -> None:
    nodes.configure(operator, sf.nodes.get(index=1), capacity=300.0)
    assert published(sf) == {}
    assert sf.nodes.get(index=1).capacity == 300.0
    assert current_table(sf.pk) == replayed_table(sf)


def test_an_inactive_node_keeps_its_queries_and_gets_no_new_ones(
    operator: Actor, sf: Cluster
) -> None:
    for index in (0, 1, 3):
        nodes.configure(operator, sf.nodes.get(index=index), "repair", active=False)
    placed(operator, sf, {f"q{i}": ["s0"] for i in range(8)})
    assert set(Task.objects.values_list("node__index", flat=True)) == {2}
    nodes.configure(operator, sf.nodes.get(index=2), active=False)
    assert Task.objects.count() == 8
    assert current_table(sf.pk) == replayed_table(sf)
    assert AuditEntry.objects.filter(action="node.change").count() == 4
    version = current_table(sf.pk).version
    nodes.configure(operator, sf.nodes.get(index=2), active=False)
    assert current_table(sf.pk).version == version


def test_wrong_values_change_nothing(operator: Actor, sf: Cluster) -> None:
    node = sf.nodes.get(index=1)
    for value in (0.0, -1.0, float("nan"), 1e9):
        with pytest.raises(Invalid):
            nodes.configure(operator, node, capacity=value, emulated=True)
    node.refresh_from_db()
    assert (node.capacity, node.emulated) == (500.0, False)
