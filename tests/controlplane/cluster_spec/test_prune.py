"""What a description does not name is ended and removed on request, in one transaction."""

import json

import pytest

from controlplane.access.roles import Actor
from controlplane.cluster_spec.apply import apply_description
from controlplane.cluster_spec.document import BadDescription
from controlplane.cluster_spec.export import description_of
from controlplane.cluster_spec.text import parse_description
from controlplane.models import AuditEntry, Cluster, Query
from controlplane.topology import rows
from tests.support.cluster import replayed_table
from tests.support.descriptions import LADDER, ruled, small

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]
# One stream, and one query on it.
LESS = """\
weir: 1
cluster: {slug: pump, name: Pump works}
nodes:
- {index: 0, name: north, capacity: 100}
streams:
- {name: level, declared_rate: 30}
queries:
- {name: a, streams: [level], text: {aggregates: {n: count(*)}, key: [stream]}}
"""


@pytest.fixture
def cluster(admin: Actor) -> Cluster:
    apply_description(admin, parse_description(ruled() + LADDER), apply=True)
    return Cluster.objects.get(slug="pump")


def test_everything_unnamed_goes_and_the_rest_stays(admin: Actor, cluster: Cluster) -> None:
    """Streams of queries that run, too: they end first. A second time, nothing changes."""
    less = parse_description(LESS)
    report = apply_description(admin, less, apply=True, prune=True)
    assert report.removed == {
        "streams": ["flow", "no"],
        "queries": ["b", "c", "d", "e"],
        "drops": ["flow", "level to c", "level to e"],
        "blackouts": ["deliveries", "holidays"],
        "exclusions": ["query d", "stream level"],
        "ladder": ["2 drop levels"],
    }
    found = description_of(cluster, measures=False)
    assert [row.name for row in found.queries] == ["a"]
    assert [row.name for row in found.streams] == ["level"]
    assert [row.name for row in found.nodes] == ["north", "south", "spare", "node 3"]
    assert (found.drops, found.blackouts, found.exclusions, found.ladder) == ([], [], [], None)
    assert replayed_table(cluster) == rows.current_table(cluster.pk)
    entry = AuditEntry.objects.filter(action="cluster.apply").latest("pk")
    assert entry.after["removed"]["queries"] == 4
    assert apply_description(admin, less, apply=True, prune=True).changes == 0


def test_a_trial_and_an_application_without_prune_remove_nothing(
    admin: Actor, cluster: Cluster
) -> None:
    before = description_of(cluster, measures=False)
    tried = apply_description(admin, parse_description(LESS), apply=False, prune=True)
    assert len(tried.removed["queries"]) == 4
    report = apply_description(admin, parse_description(LESS), apply=True)
    assert report.removed == {}
    assert "4 live queries are not named by the description: they go on" in report.left
    assert description_of(cluster, measures=False) == before


def test_a_fault_keeps_what_would_have_been_removed(admin: Actor, cluster: Cluster) -> None:
    wrong = LESS + "- {name: z, streams: [level], text: {aggregates: {n: sum(nothing)}}}\n"
    with pytest.raises(BadDescription):
        apply_description(admin, parse_description(wrong), apply=True, prune=True)
    assert Query.objects.filter(cluster=cluster, state__in=("pending", "running")).count() == 5


def test_every_field_is_told_before_and_after(admin: Actor) -> None:
    """With the place in the row."""
    apply_description(admin, small(), apply=True)
    row = small().to_json()
    row["cluster"]["alpha"], row["nodes"][1]["capacity"] = 3.0, 60.0
    row["policy"] = {"watch": "act"}
    row["streams"][0]["schema"] |= {"max_future_s": 7.0}
    other = parse_description(json.dumps(row))
    report = apply_description(admin, other, apply=False)
    assert {(d.part, d.name, d.field, d.before, d.after) for d in report.differences} == {
        ("cluster", "", "alpha", 10.0, 3.0),
        ("nodes", "south", "capacity", 100.0, 60.0),
        ("policy", "", "watch", "recommend", "act"),
        ("streams", "level", "schema.max_future_s", 315_360_000.0, 7.0),
    }
