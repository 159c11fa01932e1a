"""Key groupings and aggregators: at submission, and changes while queries run."""

import pytest

from controlplane.access.roles import Actor
from controlplane.connections import redis_client
from controlplane.errors import Conflict, Invalid
from controlplane.models import AuditEntry, Cluster, Node, Query
from controlplane.planning.snapshots import take_snapshot
from controlplane.queries.spec import QuerySpec
from controlplane.topology import aggregators, key_groupings, placement, queries
from controlplane.topology.aggregators import queries_aggregated_by
from controlplane.topology.apply import ActionRejected, TopologyChange, apply
from controlplane.topology.rows import current_table
from controlplane.wire.query_text import QueryText
from controlplane.wire.routing.cluster_actions import SetNodeCount
from controlplane.wire.routing.publication import latest_version, read_table
from controlplane.wire.routing.route import NO_AGGREGATOR, Route
from tests.support.cluster import placed, placed_split, replayed_table

pytestmark = pytest.mark.django_db(transaction=True)
TWO = '{"grouping":"partial_key"}'
ROOMY = '{"eps":0.05,"grouping":"random_choices"}'


def published(cluster: Cluster, query: Query) -> Route:
    """Return the route that the pipeline is told, which the rows lead to as well."""
    version = latest_version(redis_client(), cluster.slug)
    assert version is not None
    table = read_table(redis_client(), cluster.slug, version)
    assert table == current_table(cluster.pk) == replayed_table(cluster)
    return table.queries[query.pk]


@pytest.mark.parametrize(
    ("key_grouping", "routed", "is_merged"),
    [("partial_key", TWO, True), ("key", "", True), ("", "", False)],
)
def test_a_query_that_names_a_key_grouping_gets_an_aggregator(
    operator: Actor, sf: Cluster, key_grouping: str, routed: str, *, is_merged: bool
) -> None:
    """Also plain hashing, so that it can be changed later; others are merged by their readers."""
    query = placed_split(operator, sf, key_grouping=key_grouping)
    merged = NO_AGGREGATOR if query.aggregator is None else query.aggregator.index
    route = published(sf, query)
    assert (route.key_grouping, route.aggregator) == (routed, merged)
    assert (merged != NO_AGGREGATOR) is is_merged


def test_the_node_with_the_least_traffic_merges(operator: Actor, sf: Cluster) -> None:
    """By capacity; a node that merges already comes after those that do not."""
    placed(operator, sf, {"busy": ["s5"]})
    Node.objects.filter(index__in=(2, 3)).update(active=False)
    idle = Node.objects.filter(active=True, tasks=None).get()
    Node.objects.filter(pk=idle.pk).update(capacity=1000)
    text = QueryText({"n": "count(*)"}, key=("car",))
    specs = [QuerySpec(f"q{i}", ("s5",), text=text, tasks=4, key_grouping="key") for i in range(3)]
    queries.submit_many(operator, sf, specs)
    placement.place_pending(sf.pk)
    merged = list(Query.objects.filter(aggregator__isnull=False).order_by("id"))
    assert [query.aggregator_id == idle.pk for query in merged] == [True, False, True]


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"key_grouping": "best"}, "Must be one of key, shuffle, partial_key"),
        ({"key_grouping": "x" * 90}, "Must be one of key"),
        ({"key_grouping": "partial_key", "tasks": 1}, "more than one task"),
        ({"key_grouping": "key", "tasks": 1}, "more than one task"),
        ({"key_grouping": "partial_key", "right": ("s1",)}, "must meet in one task"),
    ],
)
def test_a_key_grouping_that_cannot_be_is_refused(
    operator: Actor, sf: Cluster, changed: dict[str, object], fault: str
) -> None:
    text = QueryText({"n": "count(*)"}, key=("car",))
    values: dict[str, object] = {"text": text, "tasks": 8} | changed
    with pytest.raises(Invalid) as refusal:
        queries.submit(operator, sf, QuerySpec("q", ("s0",), **values))  # type: ignore[arg-type]
    assert fault in refusal.value.fields["key_grouping"][0]


def test_the_key_grouping_of_a_running_query_changes(operator: Actor, sf: Cluster) -> None:
    query = placed_split(operator, sf, key_grouping="key")
    key_groupings.set_key_grouping(operator, query, "partial_key", reason="a hot car")
    assert published(sf, query).key_grouping == TWO
    entry = AuditEntry.objects.get(action="query.key_grouping")
    assert (entry.object, entry.reason) == ("q", "a hot car")
    assert (entry.before, entry.after) == (
        {"key_grouping": "key", "key_grouping_parameters": {}},
        {"key_grouping": "partial_key", "key_grouping_parameters": {}},
    )
    key_groupings.set_key_grouping(operator, query, "key")
    assert published(sf, query).key_grouping == ""
    before = latest_version(redis_client(), "sf")
    key_groupings.set_key_grouping(operator, query, "key")
    assert latest_version(redis_client(), "sf") == before, "nothing to change is not a version"


def test_parameters_are_stored_and_routed_without_the_defaults(
    operator: Actor, sf: Cluster
) -> None:
    text = QueryText({"n": "count(*)"}, key=("car",))
    given = {"eps": 0.05, "seed": 0}
    spec = QuerySpec("q", ("s0",), text, tasks=8, key_grouping="random_choices",
                     key_grouping_parameters=given)  # fmt: skip
    query = queries.submit(operator, sf, spec)
    entry = AuditEntry.objects.get(action="query.submit")
    assert entry.after["key_grouping_parameters"] == query.key_grouping_parameters == {"eps": 0.05}
    placement.place_pending(sf.pk)
    assert published(sf, query).key_grouping == ROOMY


def test_the_parameters_of_a_running_query_change(operator: Actor, sf: Cluster) -> None:
    query = placed_split(operator, sf, key_grouping="random_choices")
    query = key_groupings.set_key_grouping(operator, query, "random_choices", {"eps": 0.05}, "x")
    assert (query.key_grouping, query.key_grouping_parameters) == ("random_choices", {"eps": 0.05})
    assert published(sf, query).key_grouping == ROOMY
    assert [row.grouping for row in take_snapshot(sf.pk, 0.05).groupings] == [ROOMY]
    entry = AuditEntry.objects.get(action="query.key_grouping")
    assert entry.before == {"key_grouping": "random_choices", "key_grouping_parameters": {}}
    assert entry.after == {"key_grouping": "random_choices",
                           "key_grouping_parameters": {"eps": 0.05}}  # fmt: skip
    before = latest_version(redis_client(), "sf")
    key_groupings.set_key_grouping(operator, query, "random_choices", {"seed": 0, "eps": 0.05})
    assert latest_version(redis_client(), "sf") == before, "a default is not a change"
    query = key_groupings.set_key_grouping(operator, query, "partial_key")
    assert query.key_grouping_parameters == {}
    assert published(sf, query).key_grouping == TWO


@pytest.mark.parametrize(
    ("name", "parameters", "field"),
    [
        ("", {}, "key_grouping"),
        ("best", {}, "key_grouping"),
        ("random_choices", {"eps": -1.0}, "key_grouping_parameters.eps"),
        ("partial_key", {"eps": 0.1}, "key_grouping_parameters.eps"),
    ],
)
def test_a_change_that_cannot_be_has_its_fault_by_field(
    operator: Actor, sf: Cluster, name: str, parameters: dict[str, object], field: str
) -> None:
    query = placed_split(operator, sf, key_grouping="key")
    with pytest.raises(Invalid) as refusal:
        key_groupings.set_key_grouping(operator, query, name, parameters)
    assert list(refusal.value.fields) == [field]
    assert published(sf, query).key_grouping == ""


def test_the_aggregator_moves(operator: Actor, sf: Cluster) -> None:
    query = placed_split(operator, sf, key_grouping="key")
    first = published(sf, query).aggregator
    moved = aggregators.set_aggregator(operator, query, (first + 1) % 4)
    assert published(sf, query).aggregator == (first + 1) % 4
    assert moved.aggregator is not None
    chosen = aggregators.set_aggregator(operator, moved, None)
    assert chosen.aggregator is not None
    assert chosen.aggregator.index not in {(first + 1) % 4}
    assert AuditEntry.objects.filter(action="query.aggregator").count() == 2


def test_several_nodes_aggregate_and_present_ones_stay(operator: Actor, sf: Cluster) -> None:
    query = placed_split(operator, sf, key_grouping="key")
    (first,) = published(sf, query).aggregators
    aggregators.set_aggregator_count(operator, query, 3, "many windows")
    route = published(sf, query)
    assert (route.aggregators[0], len(set(route.aggregators))) == (first, 3)
    aggregators.set_aggregator_count(operator, query, 2)
    assert published(sf, query).aggregators == route.aggregators[:2]
    assert queries_aggregated_by([sf.nodes.get(index=route.aggregators[1])]) == ["q"]
    sf.refresh_from_db()
    with pytest.raises(ActionRejected) as refused:
        apply(sf, [SetNodeCount(max(route.aggregators[:2]))], TopologyChange("fewer"))
    assert refused.value.code == "node_in_use"
    aggregators.set_aggregator(operator, query, first)
    assert published(sf, query).aggregators == (first,)
    entries = AuditEntry.objects.filter(action="query.aggregators").order_by("pk")
    assert [entry.after["aggregators"] for entry in entries] == [
        list(route.aggregators), list(route.aggregators[:2]),
    ]  # fmt: skip
    for count in (0, 5):
        with pytest.raises(Invalid):
            aggregators.set_aggregator_count(operator, query, count)


def test_an_aggregator_must_be_there_and_active(operator: Actor, sf: Cluster) -> None:
    query = placed_split(operator, sf, key_grouping="key")
    assert query.aggregator is not None
    Node.objects.exclude(pk=query.aggregator.pk).update(active=False)
    other = Node.objects.filter(active=False)[0]
    for index, told in ((9, "no node 9"), (other.index, "not active"), (None, "No other node")):
        with pytest.raises(Invalid) as refusal:
            aggregators.set_aggregator(operator, query, index)
        assert told in refusal.value.fields["node"][0]


@pytest.mark.parametrize("key_grouping", ["", "key"])
def test_only_a_running_query_with_an_aggregator_changes(
    operator: Actor, sf: Cluster, key_grouping: str
) -> None:
    """Who has to look at its results must not change while it lives."""
    query = placed_split(operator, sf, key_grouping=key_grouping)
    if key_grouping:
        queries.end(operator, sf, ["q"])
    code = "not_running" if key_grouping else "no_aggregator"
    with pytest.raises(Conflict) as refusal:
        key_groupings.set_key_grouping(operator, query, "partial_key")
    assert refusal.value.code == code
    with pytest.raises(Conflict) as refusal:
        aggregators.set_aggregator(operator, query, 1)
    assert refusal.value.code == code


def test_an_ended_query_is_merged_nowhere(operator: Actor, sf: Cluster) -> None:
    """The node is free to go."""
    query = placed_split(operator, sf, key_grouping="partial_key")
    queries.end(operator, sf, ["q"])
    placement.place_pending(sf.pk)
    query.refresh_from_db()
    assert (query.state, query.aggregator, query.key_grouping) == ("ended", None, "partial_key")
    assert current_table(sf.pk).queries == {}
