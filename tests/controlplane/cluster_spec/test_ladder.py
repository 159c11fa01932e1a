"""The armed ladder of a described cluster, and weights and floors of its queries."""

import pytest
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.cluster_spec.apply import apply_description
from controlplane.cluster_spec.document import BadDescription, ClusterDescription
from controlplane.cluster_spec.export import description_of
from controlplane.cluster_spec.ladder import UNNAMED
from controlplane.cluster_spec.text import as_yaml, parse_description
from controlplane.connections import redis_client
from controlplane.models import ArmedLadder, AuditEntry, Cluster, Query
from controlplane.planners.shedding.activation import activate
from controlplane.planners.shedding.arming import arm
from controlplane.topology import queries, rows
from controlplane.wire.routing.drop_rules import INPUT
from controlplane.wire.routing.ladder import Cost, KeptPart, ResourceKind, WindowDrop
from controlplane.wire.routing.publication import read_table
from tests.support.cluster import replayed_table
from tests.support.descriptions import LADDER, SMALL
from tests.support.shedding import busy_cluster

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.nightly("commands")]


def described(text: str = SMALL + LADDER) -> ClusterDescription:
    return parse_description(text)


def test_a_described_ladder_is_armed_with_the_ids_of_the_cluster(admin: Actor) -> None:
    report = apply_description(admin, described(), apply=True)
    assert (report.created["ladder"], report.left) == (["2 drop levels"], [])
    cluster = Cluster.objects.get()
    armed = ArmedLadder.objects.get(cluster=cluster)
    assert (armed.set_by, armed.reason, armed.snapshot) == (admin.name, "the sale", None)
    level, flow = (cluster.streams.get(name=name).pk for name in ("level", "flow"))
    c = Query.objects.get(name="c").pk
    ladder = armed.value
    assert [rung.factor for rung in ladder.rungs] == [1.5, 2.5]
    assert ladder.rungs[1].kept == (KeptPart(level, c, 0.0), KeptPart(flow, INPUT, 0.8))
    assert ladder.costs[0] == Cost(level, c, ResourceKind.NODE, 1, 0.002)
    assert ladder.windows == (WindowDrop(level, c, 10_000, 10_000),)
    assert (ladder.limit, ladder.hold_ms, ladder.drain_ms, ladder.least) == (0.9, 30_000, 5_000, 0)
    table = read_table(redis_client(), "pump", cluster.routing_version)
    assert table.ladder == ladder
    assert table == replayed_table(cluster) == rows.current_table(cluster.pk)
    assert AuditEntry.objects.filter(action="ladder.arm").count() == 1


def test_a_computed_ladder_is_the_same_after_a_round_trip(
    operator: Actor, admin: Actor, sf: Cluster
) -> None:
    busy = busy_cluster(operator, sf, timezone.now())
    arm(operator, busy, "needed")
    before = ArmedLadder.objects.get(cluster=busy)
    text = as_yaml(description_of(busy))
    # Into the same cluster: nothing changes, its snapshot is kept.
    report = apply_description(admin, described(text), apply=True)
    assert (report.changes, report.left) == (0, [])
    assert ArmedLadder.objects.get(cluster=busy).snapshot_id == before.snapshot_id
    # Into another one: the same ladder, with other ids.
    other = described(text.replace("slug: sf", "slug: copy"))
    apply_description(admin, other, apply=True)
    copy = Cluster.objects.get(slug="copy")
    assert description_of(copy).ladder == description_of(busy).ladder
    armed = ArmedLadder.objects.get(cluster=copy).value
    assert armed.edges.isdisjoint(before.value.edges)
    assert [cost.seconds for cost in armed.costs] == [cost.seconds for cost in before.value.costs]
    weights = {query.name: (query.shedding_weight, query.shedding_floor)
               for query in description_of(copy).queries}  # fmt: skip
    assert weights == {"low": (0.1, 0.0), "high": (1.0, 0.5), "both": (1.0, 0.0)}


def test_another_ladder_replaces_the_armed_one(admin: Actor) -> None:
    apply_description(admin, described(), apply=True)
    version = Cluster.objects.get().routing_version
    report = apply_description(admin, described(SMALL + LADDER.replace("1.5", "1.25")), apply=True)
    assert report.changed["ladder"] == ["2 drop levels"]
    assert ArmedLadder.objects.get().value.rungs[0].factor == 1.25
    assert Cluster.objects.get().routing_version == version + 1
    # Another reason is no other ladder.
    text = SMALL + LADDER.replace("1.5", "1.25").replace("the sale", "the feast")
    assert not apply_description(admin, described(text), apply=True).changes


def test_an_armed_ladder_that_is_not_named_stays(admin: Actor) -> None:
    apply_description(admin, described(), apply=True)
    report = apply_description(admin, described(SMALL), apply=True)
    assert (report.changes, report.left) == (0, [UNNAMED])
    assert ArmedLadder.objects.exists()


def test_neither_ended_queries_nor_activations_are_described(admin: Actor) -> None:
    apply_description(admin, described(), apply=True)
    cluster = Cluster.objects.get()
    activate(admin, cluster, 2, 30, "a test")
    queries.end(admin, cluster, ["c"])
    ladder = description_of(cluster).ladder
    assert ladder is not None
    assert [[row.edge for row in rung.kept] for rung in ladder.rungs] == [[], [("flow", "")]]
    assert [cost.edge for cost in ladder.costs] == [("flow", "")]
    assert ladder.windows == []
    assert not apply_description(admin, description_of(cluster), apply=True).changes
    assert ArmedLadder.objects.get().value.least == 2.0


@pytest.mark.parametrize(
    ("before", "after", "place", "message"),
    [
        ("query: c, part: 0.5", "query: x, part: 0.5", "ladder.rungs[0].kept[0].query",
         "There is no query x"),
        ("query: c, part: 0.5", "query: d, part: 0.5", "ladder.rungs[0].kept[0].query",
         "d does not read level"),
        ("flow, part", "ebb, part", "ladder.rungs[1].kept[1].stream", "There is no stream ebb"),
        ("factor: 2.5", "factor: 1.5", "ladder.rungs[1].factor", "Must be above 1.5"),
        ("number: 1", "number: 7", "ladder.costs[0].number", "There is no node 7"),
        ("split, number: 0", "split, number: 7", "ladder.costs[1].number",
         "There is no split node 7"),
        ("part: 0.8", "part: 1.8", "ladder.rungs[1].kept[1].part", "less than or equal to 1"),
        ("window_s: 10", "window_s: 0", "ladder.windows[0].window_s", "greater than 0"),
        ("rungs:\n", "steps:\n", "ladder.rungs", "Is missing"),
    ],
)  # fmt: skip
def test_faults_have_a_place(before: str, after: str, place: str, message: str) -> None:
    assert before in LADDER
    with pytest.raises(BadDescription) as caught:
        described(SMALL + LADDER.replace(before, after))
    assert message in caught.value.faults[place][0]


def test_an_impossible_ladder_is_refused(admin: Actor) -> None:
    text = SMALL + LADDER.replace("window_s: 10", "window_s: 10, slide_s: 20")
    with pytest.raises(BadDescription) as caught:
        apply_description(admin, described(text), apply=True)
    assert "cannot begin every" in caught.value.faults["ladder"][0]
    assert not Cluster.objects.exists()


def test_weights_and_floors_of_live_queries_are_updated(admin: Actor) -> None:
    apply_description(admin, described(SMALL), apply=True)
    text = SMALL.replace("name: a, ", "name: a, shedding_weight: 3, shedding_floor: 0.25, ")
    report = apply_description(admin, described(text), apply=True)
    assert report.changed["queries"] == ["a"]
    query = Query.objects.get(name="a")
    assert (query.shedding_weight, query.shedding_floor) == (3.0, 0.25)
    assert not apply_description(admin, described(text), apply=True).changes
    assert AuditEntry.objects.filter(action="query.shedding").count() == 1
