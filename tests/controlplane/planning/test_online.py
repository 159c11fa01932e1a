"""Arriving queries follow the capacities of the nodes (decision 0009)."""

from itertools import chain

import pytest
from django.db.models import Count

from controlplane.access.roles import Actor
from controlplane.models import Cluster, Node
from controlplane.planning.online import read_online
from tests.support.cluster import placed, small_cluster, submit

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def unequal(operator: Actor) -> Cluster:
    """Return a cluster with nodes of capacity 10 and 90, and without absolute slack."""
    cluster = small_cluster(operator, nodes=2, stream_count=40, alpha=0.0)
    for index, capacity in enumerate((10.0, 90.0)):
        Node.objects.filter(cluster=cluster, index=index).update(capacity=capacity)
    return cluster


def test_queries_that_arrive_follow_the_capacities(operator: Actor, unequal: Cluster) -> None:
    """One after the other, each pass with the state as the database has it."""
    for first in range(0, 40, 10):
        placed(operator, unequal, {f"q{i}": [f"s{i}"] for i in range(first, first + 10)})
    nodes = unequal.nodes.order_by("index").annotate(queries=Count("tasks"))
    assert [node.queries for node in nodes] == pytest.approx([4, 36], abs=1)


def test_the_state_has_capacities_and_counts(operator: Actor, unequal: Cluster) -> None:
    placed(operator, unequal, {"a": ["s0"], "b": ["s1", "s2"]})
    submit(operator, unequal, {"c": ["s3"]})
    problem = read_online(unequal)
    assert problem is not None
    assert problem.state.board.capacities.tolist() == [10.0, 90.0]
    assert problem.state.live == 2
    assert sorted(chain(problem.state.traffic.tolist())) == [0.0, 6.0]


def test_equal_nodes_have_the_state_of_the_paper(operator: Actor, sf: Cluster) -> None:
    """Capacities of 500 everywhere are capacities of 1: its compiled loop is for equal servers."""
    problem = read_online(sf)
    assert problem is not None
    assert problem.state.board.capacities.tolist() == [1.0] * 4
