"""Online placement keeps every query exactly once, and its history replays to what is stored."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controlplane.access.roles import Actor
from controlplane.connections import redis_client
from controlplane.models import Cluster, Node, Query, Task
from controlplane.topology import placement, queries, rows
from controlplane.wire.routing.publication import read_table
from tests.support.cluster import actor, placed, replayed_table, small_cluster, submit

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]


def test_one_drain_places_many_in_one_version(operator: Actor, sf: Cluster) -> None:
    """A burst of submissions costs the pipeline one delta."""
    before = sf.routing_version
    placed(operator, sf, {f"q{i}": ["s0"] for i in range(40)})
    sf.refresh_from_db()
    assert sf.routing_version == before + 1


def test_queries_that_share_a_stream_share_a_node(operator: Actor, sf: Cluster) -> None:
    """LeastCost puts a query where its stream is delivered already."""
    first, second = placed(operator, sf, {"a": ["s5"], "b": ["s5"]})
    assert Task.objects.get(query=first).node_id == Task.objects.get(query=second).node_id


def test_no_active_node_leaves_the_query_pending_and_says_why(operator: Actor) -> None:
    """A person who waits is told what for."""
    cluster = small_cluster(operator, nodes=0)
    (query,) = placed(operator, cluster, {"q": ["s0"]})
    assert (query.state, query.detail) == ("pending", placement.NO_NODE)
    Node.objects.create(cluster=cluster, index=0, name="node 0", capacity=1)
    assert placement.place_pending(cluster.pk) == placement.PlacementPass(placed=1)
    query.refresh_from_db()
    assert (query.state, query.detail) == ("running", "")


def test_an_inactive_node_gets_nothing(operator: Actor, sf: Cluster) -> None:
    """A node that is going away must not be filled."""
    Node.objects.filter(index__in=(0, 1, 2)).update(active=False)
    placed(operator, sf, {f"q{i}": [f"s{i}"] for i in range(6)})
    assert set(Task.objects.values_list("node__index", flat=True)) == {3}


def test_a_gone_cluster_is_left_quietly(db: None) -> None:
    """A task may outlive the row it was sent for."""
    assert placement.place_pending(4711) == placement.PlacementPass()


def test_more_than_one_pass_is_placed(
    operator: Actor, sf: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pass is bounded, a drain is not."""
    monkeypatch.setattr(placement, "PASS", 3)
    submit(operator, sf, {f"q{i}": ["s0"] for i in range(10)})
    assert placement.place_pending(sf.pk) == placement.PlacementPass(placed=10)


def test_reading_the_problem_does_not_grow_with_the_queries(operator: Actor, sf: Cluster) -> None:
    """The number of statements is the same for one query and for many."""
    counts = []
    for size in (1, 30):
        submit(operator, sf, {f"q{size}-{i}": ["s1"] for i in range(size)})
        with CaptureQueriesContext(connection) as captured:
            placement.place_pending(sf.pk)
        counts.append(len(captured))
    assert counts[0] == counts[1]


def test_drains_at_the_same_time_place_each_query_once(operator: Actor, sf: Cluster) -> None:
    """Two workers may hold a task each: the loser of a version reads again and goes on."""
    submit(operator, sf, {f"q{i}": [f"s{i % 6}"] for i in range(60)})
    barrier = Barrier(3)

    def drain() -> int:
        barrier.wait(10)
        try:
            return placement.place_pending(sf.pk).placed
        finally:
            connection.close()

    def end_some() -> int:
        barrier.wait(10)
        try:
            return queries.end(operator, sf, [f"q{i}" for i in range(0, 60, 2)])
        finally:
            connection.close()

    with ThreadPoolExecutor(3) as pool:
        work = [pool.submit(call) for call in (drain, drain, end_some)]
        placed_first, placed_second, ended = (done.result(30) for done in work)
    placement.place_pending(sf.pk)
    assert ended == 30
    assert 30 <= placed_first + placed_second <= 60
    assert Query.objects.filter(state="running").count() == Task.objects.count() == 30
    assert replayed_table(sf) == rows.current_table(sf.pk)


# Sets of streams to submit a query on, numbers of live queries to end, or None to drain.
STEPS = st.lists(
    st.one_of(st.sets(st.integers(0, 3), min_size=1), st.integers(0, 30), st.none()), max_size=14
)


@given(steps=STEPS)
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_no_query_is_lost_or_doubled_whatever_the_order(
    redis_url: str, steps: list[set[int] | int | None]
) -> None:
    """After any history the deltas are gapless and replay to exactly the stored tasks."""
    call_command("flush", verbosity=0, interactive=False)
    redis_client().flushdb()
    by = actor()
    cluster = small_cluster(by, nodes=2, stream_count=4, alpha=1.0)
    for number, step in enumerate(steps):
        if step is None:
            placement.place_pending(cluster.pk)
        elif isinstance(step, set):
            submit(by, cluster, {f"q{number}": [f"s{i}" for i in sorted(step)]})
        elif live := list(cluster.queries.filter(state__in=("pending", "running"))):
            queries.end(by, cluster, [live[step % len(live)].name])
    placement.place_pending(cluster.pk)
    table = replayed_table(cluster)
    assert table == rows.current_table(cluster.pk)
    assert read_table(redis_client(), "sf", table.version) == table
    running = Query.objects.filter(state="running")
    assert set(table.queries) == set(running.values_list("id", flat=True))
    assert not Query.objects.filter(state__in=("pending", "ending")).exists()
