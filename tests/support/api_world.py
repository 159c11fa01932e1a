"""A cluster with a row of every kind that an address can name, and the addresses with their ids."""

import re
import uuid
from datetime import timedelta
from typing import Final

from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.models import (
    Alert,
    ApiToken,
    AttachedJob,
    AttachedQuery,
    Blackout,
    BulkAction,
    Cluster,
    Comparison,
    Delivery,
    Exclusion,
    FollowedFile,
    Incident,
    LabRun,
    Proposal,
    SavedView,
    Scenario,
    Sink,
    Webhook,
)
from controlplane.results.feed import FeedPlace
from tests.controlplane.api.callers import user_of
from tests.support.cluster import placed_split, small_cluster

# The id of every row that `add_rows` makes.
PK: Final = 7_777
NOW: Final = timezone.now()


def rich_cluster(by: Actor) -> Cluster:
    """Return cluster sf with streams, a split query q, and a row of each other kind."""
    cluster = small_cluster(by)
    placed_split(by, cluster)
    cluster.refresh_from_db()
    add_rows(cluster, by)
    return cluster


def add_rows(cluster: Cluster, by: Actor) -> None:
    """Create a proposal, a comparison, an incident and so on, all with the id `PK`."""
    Proposal.objects.create(
        pk=PK, cluster=cluster, planner="placement", algorithm="mms", requested_by=by.name,
        requested_at=NOW, state="computing",
    )  # fmt: skip
    Comparison.objects.create(pk=PK, cluster=cluster, requested_by=by.name, requested_at=NOW)
    Incident.objects.create(
        pk=PK, cluster=cluster, at=NOW, kind=Incident.Kind.values[0], state="undecided",
        choices=["restart"],
    )  # fmt: skip
    Alert.objects.create(
        pk=PK, cluster=cluster, subject="node_load", since=NOW, fired_at=NOW, value=1.2, worst=1.2,
        limit=1.0, evaluated_at=NOW,
    )  # fmt: skip
    Scenario.objects.create(
        pk=PK, cluster=cluster, kind="rush_hour", started_at=NOW,
        ends_at=NOW + timedelta(minutes=10), started_by=by.name,
    )  # fmt: skip
    FollowedFile.objects.create(
        pk=PK, name="sf.yaml", slug=cluster.slug, cluster=cluster, state="synced", since=NOW,
        checked_at=NOW,
    )  # fmt: skip
    Blackout.objects.create(
        pk=PK, cluster=cluster, cron="0 3 * * *", minutes=10, reason="r", owner=by.name,
        created_at=NOW,
    )  # fmt: skip
    Exclusion.objects.create(
        pk=PK, cluster=cluster, kind="node", subject="node 3", reason="r", owner=by.name,
        created_at=NOW, expires_at=NOW + timedelta(days=1),
    )  # fmt: skip
    LabRun.objects.create(
        pk=PK, planner="placement", experiment="figure-6", state="queued", requested_at=NOW,
        requested_by=by.name,
    )  # fmt: skip
    job = AttachedJob.objects.create(
        pk=PK, owner=by.name, application="local-1", name="nightly", first_seen=NOW, last_seen=NOW
    )
    AttachedQuery.objects.create(
        pk=PK, job=job, query_id=uuid.uuid4(), run_id=uuid.uuid4(), state_at=NOW, started_at=NOW
    )
    BulkAction.objects.create(
        pk=PK, cluster=cluster, kind="end", state="done", requested_by=by.name, requested_at=NOW,
        finished_at=NOW,
    )  # fmt: skip
    SavedView.objects.create(
        pk=PK, user=user_of(by), list="queries", name="hot", filter="rate>1", created_at=NOW
    )
    hook = Webhook.objects.create(
        pk=PK, name="chat", url="https://example.com/", kinds=["alerts"], cluster=cluster,
        salt="00", created_by=by.name, created_at=NOW,
    )  # fmt: skip
    Delivery.objects.create(
        pk=PK, webhook=hook, event=uuid.uuid4(), kind="alerts", created_at=NOW, next_at=NOW,
    )  # fmt: skip
    Sink.objects.create(
        pk=PK, query=cluster.queries.order_by("pk")[0], name="out", kind="http", uid=uuid.uuid4(),
        settings={"url": "https://example.com/", "secret": "signs", "batch": 500},
        position=str(FeedPlace(0, b"")), caught_up_at=NOW, created_by=by.name, created_at=NOW,
    )  # fmt: skip
    ApiToken.objects.create(
        pk=PK, name="nightly", user=user_of(by), digest="0" * 64, created_at=NOW,
        expires_at=NOW + timedelta(days=1),
    )  # fmt: skip


def address_of(path: str, cluster: Cluster) -> str:
    """Return a route or OpenAPI path with the values of existing rows for its parameters."""
    values = {
        "slug": cluster.slug, "planner": "placement", "name": "q", "key": "s0", "stream": "s0",
        "index": "0", "number": "1", "delivery": str(PK), "pk": _pk(path, cluster),
        "verb": "cancel", "kind": "rush_hour", "identity": str(uuid.UUID(int=1)),
        "query": "q", "sink": "out",
    }  # fmt: skip
    if "lab/" in path:
        values["name"] = "figure-6"
    return re.sub(r"[<{](?:\w+:)?(\w+)[>}]", lambda match: values.get(match[1], "1"), path)


def _pk(path: str, cluster: Cluster) -> str:
    """Return the id that a path names: of a stream, of a query, or of one of the other rows."""
    if "/streams/" in path:
        return str(cluster.streams.order_by("pk").values_list("pk", flat=True)[0])
    if "/queries/" in path and "attached" not in path:
        return str(cluster.queries.get(name="q").pk)
    return str(PK)
