"""Redis, checkpoint and database lost or restored: what is found, repaired and asked."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from controlplane.background import reconcile as background_reconcile
from controlplane.connections import redis_client
from controlplane.errors import Conflict, Invalid
from controlplane.health.losses.detection import (
    CheckpointFacts,
    DatabaseFacts,
    Kind,
    LossFacts,
    RedisFacts,
    detect_losses,
)
from controlplane.health.losses.repair import decide, facts_of, reconcile, restart_queries
from controlplane.models import (
    AuditEntry,
    Cluster,
    ClusterHealth,
    Incident,
    Query,
    RoutingVersion,
    Task,
)
from controlplane.topology import placement, rows
from controlplane.wire import keys
from controlplane.wire.generation import Generation, read_generation
from controlplane.wire.routing.publication import latest_version, read_table
from tests.support.cluster import actor, placed, placed_split, small_cluster, submit

pytestmark = pytest.mark.django_db(transaction=True)

MINE = Generation("g", 0, 0)
NAME = "sf-4"


def facts(**changed: Any) -> LossFacts:
    """Return what a healthy cluster holds: batch 50 everywhere, routing version 9."""
    redis: dict[str, Any] = {"generation": MINE, "batch": 50, "version": 9}
    database: dict[str, Any] = {
        "generation": "g", "batch": 50, "version": 9, "checkpoint": True, "unread": 1200,
    }  # fmt: skip
    checkpoint: dict[str, Any] | None = {"whole": 50, "started": 51, "version": 9}
    for name, value in changed.items():
        room, _, key = name.partition("_")
        if room == "redis":
            redis[key] = value
        elif room == "database":
            database[key] = value
        elif value is None:
            checkpoint = None
        else:
            assert checkpoint is not None
            checkpoint[key] = value
    return LossFacts(
        RedisFacts(**redis),
        DatabaseFacts(**database),
        None if checkpoint is None else CheckpointFacts(**checkpoint),
    )


NEW = Generation()


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({}, []),
        # A batch that is written and not yet marked as whole is none.
        ({"redis_batch": 51, "checkpoint_whole": 50}, []),
        ({"redis_generation": NEW, "redis_batch": -1, "redis_version": 0}, [Kind.REDIS_LOST]),
        ({"redis_generation": Generation("other")}, [Kind.REDIS_LOST]),
        ({"redis_batch": 40}, [Kind.REDIS_OLDER]),
        # Repaired, and no batch has run since.
        ({"redis_batch": 40, "redis_generation": Generation("g", 7, 51)}, []),
        ({"checkpoint_": None}, [Kind.CHECKPOINT_LOST]),
        ({"checkpoint_whole": 30, "checkpoint_started": 31}, [Kind.CHECKPOINT_OLDER]),
        # Nothing of this checkpoint was ever seen: a new one, or one of another log.
        ({"checkpoint_": None, "database_checkpoint": False}, []),
        ({"database_version": 8}, [Kind.DATABASE_OLDER]),
        ({"checkpoint_version": 12}, [Kind.DATABASE_OLDER]),
        ({"redis_generation": NEW, "redis_batch": -1, "checkpoint_": None},
         [Kind.REDIS_LOST, Kind.CHECKPOINT_LOST]),
        ({"redis_batch": 20, "database_version": 3}, [Kind.DATABASE_OLDER, Kind.REDIS_OLDER]),
        # A site without an agent so far, or before it had generations.
        ({"redis_generation": NEW, "database_generation": ""}, []),
    ],
)  # fmt: skip
def test_what_is_lost_follows_from_what_the_three_hold(
    changed: dict[str, Any], found: list[Kind]
) -> None:
    assert detect_losses(facts(**changed)) == found


@pytest.fixture
def sf(redis_url: str, transactional_db: None) -> Cluster:
    """A cluster with three queries of one task and one split over the nodes, all running."""
    by = actor()
    cluster = small_cluster(by)
    placed(by, cluster, {"a": ["s0"], "b": ["s1"], "c": ["s0", "s2"]})
    placed_split(by, cluster)
    cluster.refresh_from_db()
    ran(cluster, 50, unread=1200)
    check(cluster)
    return cluster


def ran(cluster: Cluster, batch: int, **known: Any) -> None:
    """Let a micro-batch have run, and the agent have seen it."""
    version = cluster.routing_version
    row = {"batch": batch, "version": version, "end": "5-0", "emitted_ms": 9, "event_ms": 7}
    redis_client().xadd(keys.telemetry_key("sf"), {"t": json.dumps(row)}, id=f"{batch}-0")
    values = {"observed_at": timezone.now(), "batch": batch, "checkpoint": NAME, **known}
    ClusterHealth.objects.update_or_create(cluster=cluster, defaults=values)


def check(
    cluster: Cluster,
    batch: int | None = 50,
    version: int | None = None,
    aside: Callable[[], str] = str,
) -> list[Kind]:
    """Reconcile with a checkpoint whose newest batch is this one, None for no checkpoint."""
    cluster.refresh_from_db()
    at = cluster.routing_version if version is None else version
    checkpoint = None if batch is None else CheckpointFacts(batch, batch, at)
    return reconcile(cluster, facts_of(cluster, checkpoint, NAME), aside)


def table(cluster: Cluster) -> Any:
    """Return the newest published table, as a reader with nothing in memory has it."""
    version = latest_version(redis_client(), "sf")
    assert version is not None
    return read_table(redis_client(), "sf", version)


def test_a_healthy_cluster_has_one_generation_everywhere(sf: Cluster) -> None:
    name = read_generation(redis_client(), "sf").id
    assert name
    assert ClusterHealth.objects.get().generation == name
    assert check(sf) == []
    assert not Incident.objects.exists()


def test_an_emptied_redis_is_repaired_and_recorded(sf: Cluster) -> None:
    """The defect: it started as `running`, and what was gone was gone without a word."""
    before = table(sf)
    old = read_generation(redis_client(), "sf")
    redis_client().flushdb()
    assert check(sf) == [Kind.REDIS_LOST]
    found = read_generation(redis_client(), "sf")
    assert found.id not in ("", old.id)
    assert found.restored > old.restored, "the nodes write open windows again"
    assert found.floor == 50, "batch numbers go on"
    assert table(sf).queries == before.queries
    row = Incident.objects.get()
    assert (row.kind, row.state) == (Kind.REDIS_LOST, "resolved")
    assert "About 1,200 records" in row.lost[0]
    assert AuditEntry.objects.filter(action="incident.redis-lost").count() == 1
    assert check(sf) == [], "one loss is one incident"


def test_a_redis_from_an_older_moment_is_repaired_and_recorded(sf: Cluster) -> None:
    name = read_generation(redis_client(), "sf").id
    assert check(sf, batch=80) == [Kind.REDIS_OLDER]
    found = read_generation(redis_client(), "sf")
    assert (found.id, found.floor) == (name, 80)
    assert found.restored
    assert check(sf, batch=80) == []


def test_a_lost_checkpoint_begins_new_runs_where_the_tasks_are(sf: Cluster) -> None:
    """So that what the old run wrote of a window and what the new one writes add up."""
    before = table(sf)
    assert check(sf, batch=None) == [Kind.CHECKPOINT_LOST]
    after = table(sf)
    assert after.queries.keys() == before.queries.keys()
    for query, route in after.queries.items():
        old = before.queries[query]
        assert route.incarnation == old.incarnation + 1
        assert (route.owners(), route.aggregator) == (old.owners(), old.aggregator)
        assert Query.objects.get(pk=query).incarnation == route.incarnation
    assert rows.current_table(sf.pk) == after
    assert "4 queries" in Incident.objects.get().lost[0]
    assert check(sf, batch=None) == [], "the new checkpoint has no batch yet"
    ran(sf, 1051)
    assert check(sf, batch=1051) == []


def test_a_batch_that_was_half_written_is_said_to_count_twice(sf: Cluster) -> None:
    redis_client().hset(keys.activity_key("sf"), "sink", 51)
    check(sf, batch=None)
    assert any("micro-batch 51" in text for text in Incident.objects.get().lost)


def test_an_older_checkpoint_is_set_aside(sf: Cluster) -> None:
    """Its batches would be written again under numbers that Redis refuses."""
    assert check(sf, batch=30, aside=lambda: "sf-4.older") == [Kind.CHECKPOINT_OLDER]
    assert any("sf-4.older" in text for text in Incident.objects.get().done)


def test_a_cluster_that_lost_both_says_so_twice(sf: Cluster) -> None:
    redis_client().flushdb()
    assert check(sf, batch=None) == [Kind.REDIS_LOST, Kind.CHECKPOINT_LOST]
    kinds = set(Incident.objects.values_list("kind", flat=True))
    assert kinds == {Kind.REDIS_LOST, Kind.CHECKPOINT_LOST}
    assert {route.incarnation for route in table(sf).queries.values()} == {1}


def restore_database(cluster: Cluster, version: int) -> None:
    """Put the database back to a moment before the newest routing versions."""
    RoutingVersion.objects.filter(cluster=cluster, version__gt=version).delete()
    kept = {route for row in RoutingVersion.objects.all() for route in
            [op["query"] for op in row.ops if op["op"] == "add_query"]}  # fmt: skip
    Task.objects.exclude(query__in=kept).delete()
    Query.objects.exclude(pk__in=kept).delete()
    Cluster.objects.filter(pk=cluster.pk).update(routing_version=version, applied_version=version)


def test_an_older_database_holds_everything_back_until_somebody_decides(sf: Cluster) -> None:
    """A query that it does not know runs on; a version that it decides next is taken."""
    newest = sf.routing_version
    restore_database(sf, newest - 1)
    assert check(sf, version=newest) == [Kind.DATABASE_OLDER]
    row = Incident.objects.get()
    assert (row.state, row.choices) == ("undecided", ["adopt-database", "stop"])
    submit(actor(name="late"), sf, {"d": ["s4"]})
    placement.place_pending(sf.pk)
    background_reconcile.reconcile_cluster(sf, timezone.now())
    assert latest_version(redis_client(), "sf") == newest
    check(sf, version=newest)
    assert Incident.objects.count() == 1


def test_adopting_the_database_voids_what_it_does_not_know(sf: Cluster) -> None:
    newest = sf.routing_version
    split = Query.objects.get(name="q").pk
    known = table(sf)
    restore_database(sf, newest - 1)
    check(sf, version=newest)
    admin = actor("admin")
    row = decide(admin, Incident.objects.get(), "adopt-database", "backup of noon")
    assert (row.state, row.decision, row.decided_by) == ("resolved", "adopt-database", admin.name)
    # A reader that has followed the void versions does not go on from them.
    version = latest_version(redis_client(), "sf")
    assert version is not None
    after = read_table(redis_client(), "sf", version, known)
    assert after.version > newest + 1
    assert split not in after.queries
    assert len(after.queries) == 3
    for query, route in after.queries.items():
        assert route.incarnation > known.queries[query].incarnation
    assert rows.current_table(sf.pk) == after
    entry = AuditEntry.objects.get(action="incident.decide")
    assert (entry.actor, entry.reason) == (admin.name, "backup of noon")
    assert check(sf, version=newest) == []
    submit(actor(name="later"), sf, {"d": ["s4"]})
    placement.place_pending(sf.pk)
    assert len(table(sf).queries) == 4


def test_a_version_that_was_published_with_other_contents_is_asked_about(sf: Cluster) -> None:
    """The database has caught up with the number before anybody looked."""
    newest = sf.routing_version
    restore_database(sf, newest - 1)
    submit(actor(name="late"), sf, {"d": ["s4"]})
    placement.place_pending(sf.pk)
    sf.refresh_from_db()
    assert sf.routing_version == newest
    background_reconcile.reconcile_cluster(sf, timezone.now())
    assert Incident.objects.get().kind == Kind.DATABASE_OLDER


def test_a_decision_is_made_once(sf: Cluster) -> None:
    newest = sf.routing_version
    restore_database(sf, newest - 1)
    check(sf, version=newest)
    row = Incident.objects.get()
    admin = actor("admin")
    with pytest.raises(Invalid):
        decide(admin, row, "hope")
    decide(admin, row, "stop")
    sf.refresh_from_db()
    assert sf.desired == Cluster.Desired.STOPPED
    with pytest.raises(Conflict):
        decide(admin, row, "adopt-database")


def test_a_cluster_without_queries_begins_nothing(redis_url: str) -> None:
    cluster = small_cluster(actor())
    assert restart_queries(cluster, "why") == 0


def test_a_batch_that_was_started_finds_its_tables_after_the_loss(sf: Cluster) -> None:
    """It runs under the version that it was planned with: without that it would fail for ever."""
    client, newest = redis_client(), sf.routing_version
    known = [read_table(client, "sf", version) for version in range(newest + 1)]
    client.flushdb()
    check(sf)
    assert [read_table(client, "sf", version) for version in range(newest + 1)] == known
