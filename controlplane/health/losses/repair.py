"""Repair of losses: results are kept correct, and lost data is recorded as an incident.

Administrators decide about incidents.
"""

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final
from uuid import uuid4

from django.db import transaction
from django.utils import timezone

from controlplane.access import audit
from controlplane.access.roles import ADMIN, Actor, Automatic, require
from controlplane.clusters import changes
from controlplane.connections import redis_client
from controlplane.errors import Conflict, Invalid, VersionMoved
from controlplane.events.after_commit import after_commit
from controlplane.events.publish import announce, event
from controlplane.health.losses.detection import (
    CheckpointFacts,
    DatabaseFacts,
    Kind,
    LossFacts,
    RedisFacts,
    detect_losses,
    is_database_older,
)
from controlplane.models import Cluster, ClusterHealth, Incident
from controlplane.topology.apply import TopologyChange, apply
from controlplane.topology.publishing import republish
from controlplane.topology.rows import current_table
from controlplane.topology.versions import retry_when_moved
from controlplane.wire import keys
from controlplane.wire.foreign.entries import EntryLocation, decoded, whole
from controlplane.wire.foreign.telemetry import newest_rows
from controlplane.wire.generation import Generation, read_generation, write_generation
from controlplane.wire.routing.actions import Action
from controlplane.wire.routing.publication import latest_version
from controlplane.wire.routing.query_actions import MoveTasks, RestartQuery

logger = logging.getLogger(__name__)

AGENT: Final = Automatic("agent")
ADOPT: Final = "adopt-database"
STOP: Final = "stop"


def reconcile(cluster: Cluster, facts: LossFacts, set_aside: Callable[[], str]) -> list[Kind]:
    """Repair losses, record incidents, and return the kinds of loss.

    `set_aside` moves the rest of a checkpoint away and returns its new name. Nothing is repaired
    while a decision of an administrator is pending. Raises `redis.RedisError`.
    """
    kinds = detect_losses(facts)
    if Kind.DATABASE_OLDER in kinds:
        _request_decision(cluster, facts)
        return kinds
    for kind in kinds:
        if kind in (Kind.REDIS_LOST, Kind.REDIS_OLDER):
            _repair_redis(cluster, facts, kind, states=len(kinds) == 1)
        else:
            _repair_checkpoint(cluster, facts, kind, set_aside())
    if not kinds:
        _adopt_generation(cluster, facts)
    return kinds


def is_publication_blocked(cluster: Cluster) -> bool:
    """Return True if routing must not be published, as Redis has versions unknown to the database.

    Requests a decision of an administrator then. Raises `redis.RedisError`.
    """
    if is_database_older(facts_of(cluster, None, "")):
        request_decision(cluster)
    return cluster.incidents.filter(state=Incident.State.UNDECIDED).exists()


def request_decision(cluster: Cluster) -> None:
    """Request a decision between two routing histories. Raises `redis.RedisError`."""
    _request_decision(cluster, facts_of(cluster, None, ""))


@retry_when_moved
def restart_queries(cluster: Cluster, reason: str, ahead: int = 1) -> int:
    """Start a new incarnation of every routed query on its nodes; return how many.

    The state of the earlier incarnation is lost; its results stay, and those of the new one add to
    them.
    """
    cluster, table = Cluster.objects.get(pk=cluster.pk), current_table(cluster.pk)
    ops: list[Action] = []
    for query, route in table.queries.items():
        ops.append(RestartQuery(query, route.incarnation + ahead, route.node))
        if route.task_ranges:
            ops.append(MoveTasks(query, route.task_ranges))
    if not ops:
        return 0
    if cluster.routing_version != table.version:
        raise VersionMoved(table.version)
    apply(cluster, ops, TopologyChange(reason, author=AGENT.name))
    return len(table.queries)


def _adopt_generation(cluster: Cluster, facts: LossFacts) -> None:
    """Copy the generation id between Redis and the database if one of them has none."""
    generation = facts.redis.generation
    if generation.id and generation.id == facts.database.generation:
        return
    if not generation.id:
        generation = Generation(uuid4().hex, 0, max(facts.newest, 0))
        write_generation(redis_client(), cluster.slug, generation)
    _store_generation(cluster, generation=generation.id)


def _repair_redis(cluster: Cluster, facts: LossFacts, kind: Kind, *, states: bool) -> None:
    restored = time.time_ns() // 1_000_000
    generation = Generation(
        uuid4().hex if kind == Kind.REDIS_LOST else facts.redis.generation.id,
        restored, max(facts.newest, 0),
    )  # fmt: skip
    lost = _unread(facts)
    if facts.checkpoint is not None and facts.checkpoint.moving:
        lost.append("States of tasks that were moved in the newest micro-batch")
    done = ["Published the routing and the schemas of streams again"]
    if states:
        done.append("Nodes write the rows of all open windows again, from their state")
    # Redis before the rows: after a kill in between the loss is detected again.
    republish(cluster)
    write_generation(redis_client(), cluster.slug, generation)
    with transaction.atomic():
        _record(cluster, kind, lost, done, facts)
        _store_generation(cluster, generation=generation.id, unread=None)


@transaction.atomic
def _repair_checkpoint(cluster: Cluster, facts: LossFacts, kind: Kind, aside: str) -> None:
    restarted = restart_queries(cluster, "the checkpoint was lost: every query is restarted")
    lost = [f"The states of {restarted} queries, with records that waited at nodes"]
    lost.append("Pairs of joins between a record before the loss and one after it")
    if facts.redis.half_written is not None:
        lost.append(
            f"Exactness of micro-batch {facts.redis.half_written}: it was half written, "
            "and its records are read again"
        )
    done = [f"Restarted {restarted} queries; new results add to the earlier ones"]
    if aside:
        done.append(f"Moved what there was of the checkpoint to {aside}")
    _record(cluster, kind, lost, done, facts)
    # Until the first batch of the new checkpoint, its absence is not a loss.
    _store_generation(cluster, checkpoint="")


@transaction.atomic
def _request_decision(cluster: Cluster, facts: LossFacts) -> None:
    undecided = cluster.incidents.filter(kind=Kind.DATABASE_OLDER, state=Incident.State.UNDECIDED)
    if undecided.exists():
        return
    lost = [
        f"Routing versions {facts.database.version + 1} to {facts.newest_version}, "
        "with the queries, streams and moves that they are about"
    ]
    done = ["Held the driver and the publication of routing back until an administrator decides"]
    _record(cluster, Kind.DATABASE_OLDER, lost, done, facts, choices=[ADOPT, STOP])


def _record(
    cluster: Cluster,
    kind: Kind,
    lost: list[str],
    done: list[str],
    facts: LossFacts,
    choices: list[str] | None = None,
) -> None:
    state = Incident.State.UNDECIDED if choices else Incident.State.RESOLVED
    facts_json: dict[str, Any] = {
        "unread": facts.database.unread,
        "batch": facts.newest,
        "redis_batch": facts.redis.batch,
        "version": facts.newest_version,
        "database_version": facts.database.version,
        "checkpoint_batch": facts.checkpoint.started if facts.checkpoint else None,
    }
    row = Incident.objects.create(
        cluster=cluster, at=timezone.now(), kind=kind, state=state, lost=lost, done=done,
        facts=facts_json, choices=choices or [],
    )  # fmt: skip
    after = {"lost": lost, "done": done, "facts": facts_json}
    audit.record(AGENT, f"incident.{kind}", cluster.slug, cluster=cluster, after=after)
    text = f"{row.get_kind_display()}: {'; '.join(lost)}"
    announce(cluster.pk, event("alert", text[:500], pk=row.pk, state=state))
    logger.error("%s: %s", cluster.slug, text)


def _unread(facts: LossFacts) -> list[str]:
    if facts.database.unread is None:
        return ["Records that were unread, of a number that is not known"]
    return [f"About {facts.database.unread:,} records that no micro-batch had read"]


def _store_generation(cluster: Cluster, **values: Any) -> None:
    now = timezone.now()
    ClusterHealth.objects.update_or_create(
        cluster=cluster, defaults=values, create_defaults={"observed_at": now, **values}
    )


def facts_of(cluster: Cluster, checkpoint: CheckpointFacts | None, name: str) -> LossFacts:
    """Return the facts of all three; `name`: the checkpoint's. Raises `redis.RedisError`.

    Redis is read before the database, so a change in between is in neither or in both.
    """
    redis = _redis_facts(cluster.slug)
    return LossFacts(redis, _database_facts(cluster.pk, name), checkpoint)


def _redis_facts(slug: str) -> RedisFacts:
    client = redis_client()
    row = next(iter(newest_rows(client, slug, 1)), {})
    batch = row.get("batch", -1)
    written: Any = client.hget(keys.activity_key(slug), "sink")
    sink = decoded(client, slug, EntryLocation.HEARTBEAT, lambda value: whole(value or -1), written)
    half = sink if sink is not None and sink > batch else None
    generation, version = read_generation(client, slug), latest_version(client, slug)
    return RedisFacts(generation, batch, version or 0, half, row.get("event_ms"))


def _database_facts(pk: int, name: str) -> DatabaseFacts:
    version = Cluster.objects.values_list("routing_version", flat=True).get(pk=pk)
    health = ClusterHealth.objects.filter(cluster=pk).first()
    if health is None:
        return DatabaseFacts(version=version)
    batch = -1 if health.batch is None else health.batch
    seen = bool(health.checkpoint) and health.checkpoint == name
    return DatabaseFacts(health.generation, batch, version, seen, health.unread)


# Incarnations of a query that a data plane newer than the database may have started.
_RUNS_AHEAD = 1000


def decide(actor: Actor, incident: Incident, choice: str, reason: str = "") -> Incident:
    """Apply a decision about an incident and resolve it.

    `adopt-database`: the database is right; routing versions that it lacks are void, and every
    query is restarted. `stop`: the cluster is stopped, so that another database can be restored.
    Raises `Forbidden`, `Invalid` for an unknown choice, `Conflict` for a decided incident.
    """
    require(actor, ADMIN, incident.cluster)
    # Outside of the transaction: Redis is asked.
    adopts = choice == ADOPT
    newest = latest_version(redis_client(), incident.cluster.slug) if adopts else None
    return _decide(actor, incident, choice, reason, newest or 0)


@transaction.atomic
def _decide(actor: Actor, incident: Incident, choice: str, reason: str, newest: int) -> Incident:
    row = Incident.objects.select_for_update().get(pk=incident.pk)
    if row.state != Incident.State.UNDECIDED:
        raise Conflict("decided", f"Incident {row.pk} is decided: {row.decision or 'resolved'}")
    if choice not in row.choices:
        raise Invalid({"choice": [f"Must be one of {', '.join(row.choices)}"]})
    row.state, row.decision = Incident.State.RESOLVED, choice
    row.decided_by, row.decided_at = actor.name, timezone.now()
    if choice == ADOPT:
        newest = max(newest, int(row.facts["version"]))
        row.done = [*row.done, *_adopt_database(row.cluster, newest)]
    elif choice == STOP:
        changes.stop(actor, row.cluster, reason or f"incident {row.pk}")
        row.done = [*row.done, "Stopped the cluster"]
    row.save()
    audit.record(
        actor, "incident.decide", f"incident {row.pk}", cluster=row.cluster, reason=reason,
        after={"kind": row.kind, "choice": choice},
    )  # fmt: skip
    announce(row.cluster_id, event("alert", f"{actor.name} chose {choice}", pk=row.pk))
    return row


def _adopt_database(cluster: Cluster, known: int) -> list[str]:
    """Publish the database's routing as the newest version, and restart every query.

    The version is two above the newest of the data plane: without the delta in between no reader
    can follow the void versions, and every reader starts from the snapshot.
    """
    newest = max(known, cluster.routing_version)
    Cluster.objects.filter(pk=cluster.pk).update(routing_version=newest + 1)
    restarted = restart_queries(
        cluster, "the database was restored: versions are void", _RUNS_AHEAD
    )
    cluster.refresh_from_db()
    after_commit("publish the routing", partial(republish, cluster))
    return [
        f"Declared routing versions up to {newest} void; the newest is {cluster.routing_version}",
        f"Restarted {restarted} queries; windows open at the loss may be incomplete",
    ]
