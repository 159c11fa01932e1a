"""Key schemes and merge nodes: what queries are submitted with, and changes while they run."""

import pytest

from controlplane.access.roles import Actor
from controlplane.connections import redis_client
from controlplane.errors import Conflict, Forbidden, Invalid
from controlplane.models import AuditEntry, Cluster, Node, Query
from controlplane.topology import key_groupings, placement, queries
from controlplane.topology.queries import QuerySpec
from controlplane.topology.rows import current_table
from controlplane.wire.query import QueryText
from controlplane.wire.routing import NOBODY, Route
from controlplane.wire.routing.publication import latest_version, read_table
from tests.support.cluster import actor, placed, placed_split, replayed_table

pytestmark = pytest.mark.django_db(transaction=True)
TWO = '{"kind": "two_choices"}'


def published(cluster: Cluster, query: Query) -> Route:
    """Return the route that the pipeline is told, which the rows lead to as well."""
    version = latest_version(redis_client(), cluster.slug)
    assert version is not None
    table = read_table(redis_client(), cluster.slug, version)
    assert table == current_table(cluster.pk) == replayed_table(cluster)
    return table.queries[query.pk]


def test_a_query_with_a_scheme_gets_a_merge_node(operator: Actor, sf: Cluster) -> None:
    query = placed_split(operator, sf, scheme="two_choices")
    route = published(sf, query)
    assert query.merge_node is not None
    assert (route.scheme, route.merge) == (TWO, query.merge_node.index)


def test_a_query_without_one_is_merged_by_its_readers(operator: Actor, sf: Cluster) -> None:
    route = published(sf, placed_split(operator, sf))
    assert (route.scheme, route.merge) == ("", NOBODY)


def test_a_query_by_hash_may_ask_for_a_merge_node(operator: Actor, sf: Cluster) -> None:
    """So that its scheme can be changed later."""
    route = published(sf, placed_split(operator, sf, scheme="hash"))
    assert (route.scheme, route.merge >= 0) == ("", True)


def test_the_node_with_the_least_traffic_merges(operator: Actor, sf: Cluster) -> None:
    """By capacity; a node that merges already comes after those that do not."""
    placed(operator, sf, {"busy": ["s5"]})
    Node.objects.filter(index__in=(2, 3)).update(active=False)
    idle = Node.objects.filter(active=True, tasks=None).get()
    Node.objects.filter(pk=idle.pk).update(capacity=1000)
    text = QueryText({"n": "count(*)"}, key=("car",))
    specs = [QuerySpec(f"q{i}", ("s5",), text=text, tasks=4, scheme="hash") for i in range(3)]
    queries.submit_many(operator, sf, specs)
    placement.place_pending(sf.pk)
    merged = list(Query.objects.filter(merge_node__isnull=False).order_by("id"))
    assert [query.merge_node_id == idle.pk for query in merged] == [True, False, True]


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"scheme": "best"}, "Must be one of hash, two_choices"),
        ({"scheme": "x" * 90}, "Must be one of hash"),
        ({"scheme": "two_choices", "tasks": 1}, "more than one task"),
        ({"scheme": "hash", "tasks": 1}, "more than one task"),
        ({"scheme": "two_choices", "right": ("s1",)}, "must meet in one task"),
    ],
)
def test_a_scheme_that_cannot_be_is_refused(
    operator: Actor, sf: Cluster, changed: dict[str, object], fault: str
) -> None:
    text = QueryText({"n": "count(*)"}, key=("car",))
    values: dict[str, object] = {"text": text, "tasks": 8} | changed
    with pytest.raises(Invalid) as refusal:
        queries.submit(operator, sf, QuerySpec("q", ("s0",), **values))  # type: ignore[arg-type]
    assert fault in refusal.value.fields["scheme"][0]


def test_the_scheme_of_a_running_query_changes(operator: Actor, sf: Cluster) -> None:
    query = placed_split(operator, sf, scheme="hash")
    key_groupings.set_scheme(operator, query, "two_choices", "a hot car")
    assert published(sf, query).scheme == TWO
    entry = AuditEntry.objects.get(action="query.scheme")
    assert (entry.object, entry.reason) == ("q", "a hot car")
    assert (entry.before, entry.after) == ({"scheme": "hash"}, {"scheme": "two_choices"})
    key_groupings.set_scheme(operator, query, "hash")
    assert published(sf, query).scheme == ""
    before = latest_version(redis_client(), "sf")
    key_groupings.set_scheme(operator, query, "hash")
    assert latest_version(redis_client(), "sf") == before, "nothing to change is no version"


def test_the_merge_node_moves(operator: Actor, sf: Cluster) -> None:
    query = placed_split(operator, sf, scheme="hash")
    first = published(sf, query).merge
    moved = key_groupings.move_merge(operator, query, (first + 1) % 4)
    assert published(sf, query).merge == (first + 1) % 4
    assert moved.merge_node is not None
    chosen = key_groupings.move_merge(operator, moved, None)
    assert chosen.merge_node is not None
    assert chosen.merge_node.index not in {(first + 1) % 4}
    assert AuditEntry.objects.filter(action="query.merge_node").count() == 2


def test_a_merge_node_must_be_there_and_active(operator: Actor, sf: Cluster) -> None:
    query = placed_split(operator, sf, scheme="hash")
    assert query.merge_node is not None
    Node.objects.exclude(pk=query.merge_node.pk).update(active=False)
    other = Node.objects.filter(active=False)[0]
    for index, told in ((9, "no node 9"), (other.index, "not active"), (None, "No other node")):
        with pytest.raises(Invalid) as refusal:
            key_groupings.move_merge(operator, query, index)
        assert told in refusal.value.fields["node"][0]


@pytest.mark.parametrize("scheme", ["", "hash"])
def test_only_a_running_query_with_a_merge_node_changes(
    operator: Actor, sf: Cluster, scheme: str
) -> None:
    """Who has to look at its results must not change while it lives."""
    query = placed_split(operator, sf, scheme=scheme)
    if scheme:
        queries.end(operator, sf, ["q"])
    code = "not_running" if scheme else "no_merge_node"
    with pytest.raises(Conflict) as refusal:
        key_groupings.set_scheme(operator, query, "two_choices")
    assert refusal.value.code == code
    with pytest.raises(Conflict) as refusal:
        key_groupings.move_merge(operator, query, 1)
    assert refusal.value.code == code


def test_it_takes_an_operator(operator: Actor, sf: Cluster) -> None:
    query = placed_split(operator, sf, scheme="hash")
    viewer = actor("viewer")
    with pytest.raises(Forbidden):
        key_groupings.set_scheme(viewer, query, "two_choices")
    with pytest.raises(Forbidden):
        key_groupings.move_merge(viewer, query, None)
    assert published(sf, query).scheme == ""


def test_an_ended_query_is_merged_nowhere(operator: Actor, sf: Cluster) -> None:
    """The node is free to go."""
    query = placed_split(operator, sf, scheme="two_choices")
    queries.end(operator, sf, ["q"])
    placement.place_pending(sf.pk)
    query.refresh_from_db()
    assert (query.state, query.merge_node, query.scheme) == ("ended", None, "two_choices")
    assert current_table(sf.pk).queries == {}
