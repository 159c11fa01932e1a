"""The number of tasks of running queries."""

import pytest

from controlplane.access.roles import Actor
from controlplane.errors import Conflict, Invalid
from controlplane.models import AuditEntry, Cluster, Node, Query
from controlplane.topology import key_groupings
from controlplane.topology.rows import current_table
from tests.support.cluster import placed_split, replayed_table

pytestmark = pytest.mark.django_db(transaction=True)


def owners(cluster: Cluster, query: Query) -> tuple[int, ...]:
    """Return the nodes of the tasks, as rows and published versions have them."""
    routes = current_table(cluster.pk).queries
    assert routes == replayed_table(cluster).queries
    return routes[query.pk].owners()


def test_new_tasks_start_where_the_query_has_fewest_by_capacity(
    operator: Actor, sf: Cluster
) -> None:
    query = placed_split(operator, sf, key_grouping="key")
    before = owners(sf, query)
    Node.objects.filter(cluster=sf, index=3).update(capacity=10 * sf.nodes.get(index=0).capacity)
    Node.objects.filter(cluster=sf, index=2).update(active=False)
    changed = key_groupings.set_task_count(operator, query, len(before) + 3, "more load")
    assert owners(sf, query) == (*before, 3, 3, 3)
    query.refresh_from_db()
    assert (query.task_count, changed.task_count) == (len(before) + 3, len(before) + 3)
    entry = AuditEntry.objects.get(action="query.tasks")
    assert (entry.before, entry.after, entry.reason) == (
        {"tasks": len(before)}, {"tasks": len(before) + 3}, "more load",
    )  # fmt: skip


def test_the_last_tasks_are_removed_and_the_same_number_changes_nothing(
    operator: Actor, sf: Cluster
) -> None:
    query = placed_split(operator, sf, key_grouping="partial_key")
    before = owners(sf, query)
    key_groupings.set_task_count(operator, query, 3)
    assert owners(sf, query) == before[:3]
    version = Cluster.objects.get(pk=sf.pk).routing_version
    key_groupings.set_task_count(operator, query, 3)
    assert Cluster.objects.get(pk=sf.pk).routing_version == version


@pytest.mark.parametrize("tasks", [-1, 0, 1, 1025])
def test_a_number_out_of_bounds_is_refused(operator: Actor, sf: Cluster, tasks: int) -> None:
    query = placed_split(operator, sf, key_grouping="key")
    with pytest.raises(Invalid) as refused:
        key_groupings.set_task_count(operator, query, tasks)
    assert list(refused.value.fields) == ["tasks"]


def test_without_an_aggregator_the_number_is_fixed(operator: Actor, sf: Cluster) -> None:
    query = placed_split(operator, sf)
    with pytest.raises(Conflict) as refused:
        key_groupings.set_task_count(operator, query, 4)
    assert refused.value.code == "no_aggregator"


def test_without_an_active_node_no_task_is_added(operator: Actor, sf: Cluster) -> None:
    query = placed_split(operator, sf, key_grouping="key")
    Node.objects.filter(cluster=sf).update(active=False)
    with pytest.raises(Conflict) as refused:
        key_groupings.set_task_count(operator, query, 20)
    assert refused.value.code == "no_active_node"
    key_groupings.set_task_count(operator, query, 2)
    assert len(owners(sf, query)) == 2
