"""People of each role, and a cluster with everything that a page can show."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.models import AuditEntry, Cluster, Proposal
from controlplane.proposals import computation, requests
from controlplane.telemetry import time_series
from tests.support import cluster as made
from tests.support.prepared import prepared
from tests.support.watching import AGES


@pytest.fixture
def sf(operator: Actor) -> Cluster:
    """Four nodes, six streams, three running queries, samples that present values are of."""
    cluster = prepared("placed", lambda: _placed(operator), operator.user.pk)
    add_samples(cluster)
    return cluster


def _placed(operator: Actor) -> Cluster:
    cluster = made.small_cluster(operator)
    made.placed(operator, cluster, {"a": ["s0"], "b": ["s0", "s1"], "c": ["s5"]})
    cluster.refresh_from_db()
    return cluster


def add_samples(cluster: Cluster) -> list[dict[str, Any]]:
    """Store the samples of `AGES`; return them, oldest first."""
    now = timezone.now()
    # As the relay stores them: a sample's moment is its t, to the millisecond.
    now = now.replace(microsecond=now.microsecond // 1000 * 1000)
    moments = [now - timedelta(seconds=age) for age in AGES]
    values = [sample(round(moment.timestamp() * 1000)) for moment in moments]
    time_series.record(cluster, values)
    Cluster.objects.filter(pk=cluster.pk).update(last_sample_at=moments[-1])
    return values


def sample(t: int, **changed: Any) -> dict[str, Any]:
    """Return a sample of four nodes, the first one full to 90 %."""
    return {
        "t": t, "version": 1, "arrived": 1000.0, "in": 1000.0, "read": 900.0,
        "delivered": 1200.0, "rf": 4 / 3, "imbalance": 0.3, "p50": 600.0, "p95": 1200.0,
        "p99": 1500.0, "batch_ms": 700.0, "loads": [450.0, 250.0, 250.0, 250.0],
        "busy": [0.9, 0.5, 0.5, 0.5], "tasks": [1, 1, 1, 0],
        "late": 0.0, "state_bytes": 100, "event_ms": t - 500, "emitted_ms": t,
    } | changed  # fmt: skip


@pytest.fixture
def ready(operator: Actor, sf: Cluster) -> Proposal:
    """A proposal that is computed and waits."""
    return prepared("ready", lambda: _computed(operator, sf), operator.user.pk, sf.pk)


def _computed(operator: Actor, cluster: Cluster) -> Proposal:
    # With the slack of 1 a node may host floor(2 * 3 / 4) = 1 query.
    proposal = requests.request(operator, cluster, "mms", {"nu": 1.0})
    computation.compute(proposal.pk)
    proposal.refresh_from_db()
    assert proposal.state == "ready", proposal.error
    return proposal


@pytest.fixture
def entry(sf: Cluster) -> AuditEntry:
    """One row of the audit log."""
    return AuditEntry.objects.filter(cluster=sf)[0]


def browser_of(actor: Actor) -> Client:
    """Return a logged-in client."""
    assert isinstance(actor.user, User)
    client = Client()
    client.force_login(actor.user)
    return client


@pytest.fixture
def operating(operator: Actor) -> Client:
    """The operator's browser."""
    return browser_of(operator)


@pytest.fixture
def approving(approver: Actor) -> Client:
    """The approver's browser."""
    return browser_of(approver)


@pytest.fixture
def administering(operator: Actor) -> Client:
    """The browser of an admin."""
    return browser_of(made.actor("admin"))


@pytest.fixture
def viewing(viewer: Actor) -> Client:
    """The viewer's browser."""
    return browser_of(viewer)
