"""Laws of `topology.apply`, for any sequence of actions, on both databases."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controlplane.access.roles import Actor
from controlplane.errors import VersionMoved
from controlplane.models import AuditEntry, Cluster, Drop, Node, Query, RoutingVersion, Stream, Task
from controlplane.topology.apply import ActionRejected, Applied, TopologyChange, apply
from controlplane.topology.rows import current_table
from controlplane.wire.routing.action_json import action_from_json, action_to_json
from controlplane.wire.routing.actions import Action
from controlplane.wire.routing.cluster_actions import (
    AssignPartition,
    AssignStream,
    SetCapacity,
    SetDropRule,
    SetNodeActive,
    SetNodeCount,
    SetSplitCount,
)
from controlplane.wire.routing.drop_rules import INPUT, DropRule
from controlplane.wire.routing.query_actions import (
    MoveTasks,
    RemoveQuery,
    RestartQuery,
    SetAggregator,
    SetAggregators,
    SetKeyGrouping,
    SetTaskCount,
)
from controlplane.wire.routing.table import RoutingTable
from tests.support.cluster import placed, placed_split, replayed_table, small_cluster
from tests.support.prepared import prepared

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
CHANGE: Final = TopologyChange("a test")
# Objects by their place: the ids of queries and streams are not known before they are stored.
QUERIES: Final = st.integers(0, 3)
STREAMS: Final = st.integers(0, 2)
# Nodes 3 and 4 do not exist until the number of nodes is raised.
NODES: Final = st.integers(0, 4)
SCHEDULES: Final = st.none() | st.builds(DropRule.of, st.floats(0, 1), st.integers(0, 3))


@st.composite
def ranges(draw: st.DrawFn) -> tuple[tuple[int, int, int], ...]:
    first = draw(st.integers(0, 8))
    return ((draw(NODES), first, first + draw(st.integers(1, 8))),)


@st.composite
def task_counts(draw: st.DrawFn) -> SetTaskCount:
    """Return fewer tasks, or more on one node; `placed_split` gives a query 8."""
    tasks = draw(st.integers(0, 12))
    added = ((draw(NODES), draw(st.sampled_from([8, 8, 8, 3])), tasks),) if tasks > 8 else ()
    return SetTaskCount(draw(QUERIES), tasks, added)


ACTIONS: Final = st.lists(
    st.one_of(
        st.builds(MoveTasks, QUERIES, st.builds(lambda node: ((node, 0, 1),), NODES)),
        st.builds(MoveTasks, QUERIES, ranges()),
        st.builds(RestartQuery, QUERIES, st.integers(0, 5), NODES),
        st.builds(AssignStream, STREAMS, st.integers(0, 3)),
        st.builds(AssignPartition, STREAMS, st.integers(0, 2), st.none() | st.integers(0, 3)),
        st.builds(SetKeyGrouping, QUERIES, st.sampled_from(["", '{"grouping":"partial_key"}'])),
        st.builds(SetAggregator, QUERIES, NODES),
        st.builds(SetAggregators, QUERIES, st.lists(NODES, min_size=1, max_size=3).map(tuple)),
        task_counts(),
        st.builds(SetCapacity, NODES, st.floats(1, 1e6), st.booleans()),
        st.builds(SetNodeActive, NODES, st.booleans()),
        st.builds(SetNodeCount, st.integers(1, 5), st.floats(1, 1e6)),
        st.builds(SetSplitCount, st.integers(1, 4)),
        st.builds(SetDropRule, STREAMS, st.just(INPUT), SCHEDULES),
        st.builds(SetDropRule, STREAMS, QUERIES, SCHEDULES),
    ),
    min_size=1,
    max_size=5,
)
REMOVALS: Final = st.lists(st.builds(RemoveQuery, QUERIES), min_size=1, max_size=2, unique=True)
QUERY_COLUMNS: Final = ("pk", "state", "incarnation", "key_grouping", "aggregator__index")
LAW: Final = settings(
    max_examples=60, deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip


@pytest.fixture
def cluster(operator: Actor) -> Cluster:
    """A cluster with two queries of one task and two split ones, of which one is aggregated."""
    return prepared(__name__, lambda: _cluster(operator), operator.user.pk)


def _cluster(operator: Actor) -> Cluster:
    cluster = small_cluster(operator, nodes=3, stream_count=3)
    placed(operator, cluster, {"a": ["s0", "s1"], "b": ["s2"]})
    placed_split(operator, cluster, "c")
    placed_split(operator, cluster, "d", "key")
    cluster.refresh_from_db()
    return cluster


def named(cluster: Cluster, actions: Sequence[Action]) -> list[Action]:
    """Return the actions with ids of the cluster in place of places."""
    queries = list(Query.objects.order_by("pk").values_list("pk", flat=True))
    streams = list(Stream.objects.order_by("pk").values_list("pk", flat=True))
    found = []
    for action in actions:
        row = action_to_json(action)
        # The JSON of a drop rule of an input edge has no query.
        if "query" in row:
            row["query"] = queries[row["query"]]
        if hasattr(action, "stream"):
            row["stream"] = streams[row["stream"]]
        found.append(action_from_json(row))
    return found


def rows(cluster: Cluster) -> list[Any]:
    """Return what the database holds of a topology, without versions and times."""
    cluster.refresh_from_db()
    return [
        (cluster.slots, cluster.splits),
        list(
            Query.objects.order_by("pk").values_list(
                "pk",
                "state",
                "incarnation",
                "key_grouping",
                "aggregator__index",
                "more_aggregators",
                "task_count",
            )
        ),
        list(Task.objects.order_by("query", "index").values_list("query", "index", "node__index")),
        list(
            Stream.objects.order_by("pk").values_list(
                "pk",
                "split",
                "partition_splits",
                "schema",
                "retired",
            )
        ),
        # The rows of removed nodes stay: samples refer to them.
        list(
            Node.objects.filter(index__lt=cluster.slots)
            .order_by("index")
            .values_list("index", "capacity", "emulated", "active")
        ),
        list(Drop.objects.order_by("stream", "query").values_list("stream", "query", "rule")),
    ]


@contextmanager
def undone() -> Iterator[None]:
    """Undo all writes within."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def applied(cluster: Cluster, actions: Sequence[Action], **options: Any) -> Applied | None:
    """Apply the actions; None if they are refused, which must not have changed anything."""
    before, versions = rows(cluster), RoutingVersion.objects.count()
    try:
        return apply(cluster, actions, CHANGE, **options)
    except (ActionRejected, VersionMoved):
        assert (rows(cluster), RoutingVersion.objects.count()) == (before, versions)
        return None


@given(st.lists(ACTIONS | REMOVALS, min_size=1, max_size=4))
@LAW
def test_the_table_rebuilt_from_rows_is_the_table_after_the_actions(
    cluster: Cluster, sequence: list[list[Action]]
) -> None:
    with undone():
        for actions in sequence:
            cluster.refresh_from_db()
            Query.objects.filter(state="running").update(state="ending")
            applied(cluster, named(cluster, actions))
        table = replayed_table(cluster)
        assert current_table(cluster.pk) == table
        assert RoutingTable.from_json(table.to_json()) == table


@given(ACTIONS)
@LAW
def test_actions_and_then_their_inverses_leave_rows_and_table_as_before(
    cluster: Cluster, actions: list[Action]
) -> None:
    with undone():
        before, table = rows(cluster), current_table(cluster.pk)
        done = applied(cluster, named(cluster, actions), inverses=True)
        if done is None:
            return
        cluster.refresh_from_db()
        back = [action for inverse in reversed(done.inverses) for action in inverse]
        apply(cluster, back, CHANGE)
        assert rows(cluster) == before
        after = current_table(cluster.pk)
        assert after == RoutingTable.of(table.version + 2, table.draft())


@given(ACTIONS)
def test_actions_come_back_from_json(actions: list[Action]) -> None:
    assert [action_from_json(action_to_json(action)) for action in actions] == actions


def test_a_change_is_recorded_once(operator: Actor, cluster: Cluster) -> None:
    change = TopologyChange("moved", "query.move", "a", "why", {"node": 0}, {"node": 1})
    query = Query.objects.get(name="a")
    done = apply(cluster, [MoveTasks(query.pk, ((1, 0, 1),))], change, actor=operator)
    entry = AuditEntry.objects.filter(action="query.move").get()
    assert (entry.reason, entry.before, entry.after) == ("why", {"node": 0}, {"node": 1})
    assert (done.version.actor, done.version.reason) == (operator.name, "moved")
    done.version.refresh_from_db()
    assert done.version.ops == [{"op": "move_tasks", "query": query.pk, "moves": [[1, 0, 1]]}]


def test_a_version_that_has_moved_changes_nothing(cluster: Cluster) -> None:
    cluster.refresh_from_db()
    before = rows(cluster)
    cluster.routing_version -= 1
    with pytest.raises(VersionMoved), transaction.atomic():
        apply(cluster, [SetSplitCount(3)], CHANGE)
    assert rows(cluster) == before


@pytest.mark.parametrize(
    ("action", "code"),
    [
        (MoveTasks(0, ((7, 0, 1),)), "no_such_node"),
        (MoveTasks(0, ((1, 3, 4),)), "inconsistent"),
        (SetAggregator(0, 1), "inconsistent"),
        (SetAggregators(3, (1, 1)), "inconsistent"),
        (SetAggregators(3, (1, 7)), "no_such_node"),
        (SetTaskCount(2, 4), "inconsistent"),
        (SetTaskCount(3, 1), "inconsistent"),
        (SetTaskCount(3, 9, ((3, 8, 9),)), "no_such_node"),
        (SetNodeCount(1), "node_in_use"),
        (SetCapacity(3, 10.0, emulated=True), "no_such_node"),
    ],
)
def test_a_refusal_names_the_action(cluster: Cluster, action: Action, code: str) -> None:
    fine = SetSplitCount(4)
    with pytest.raises(ActionRejected) as refused:
        apply(cluster, named(cluster, [fine, action]), CHANGE)
    assert (refused.value.code, refused.value.index) == (code, 1)
    assert refused.value.data["action"] == 1
