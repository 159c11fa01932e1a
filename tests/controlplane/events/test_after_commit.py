"""A Redis that is away costs nothing that was saved."""

import logging
from functools import partial

import pytest
from django.db import transaction
from pytest_django import Settings

from controlplane.access.roles import Actor
from controlplane.background import reconcile
from controlplane.connections import redis_client
from controlplane.events.after_commit import after_commit
from controlplane.models import Cluster, Query
from controlplane.topology import placement
from controlplane.topology.rows import current_table
from controlplane.wire.routing.publication import read_table
from tests.support.cluster import submit
from tests.support.redis_server import free_port

pytestmark = pytest.mark.django_db(transaction=True)


def _fail(why: str) -> None:
    raise OSError(why)


def test_failure_after_the_commit_is_logged_and_not_raised(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Also of a partial, which has no name of its own."""
    with caplog.at_level(logging.ERROR), transaction.atomic():
        after_commit("tell the browsers", partial(_fail, "gone"))
    assert "could not tell the browsers" in caplog.text


def test_query_submitted_while_redis_is_away_is_placed_when_it_is_back(
    operator: Actor, sf: Cluster, redis_url: str, settings: Settings
) -> None:
    """The submission succeeds, the version is decided, and the beat's task publishes it."""
    settings.REDIS_URL = f"redis://127.0.0.1:{free_port()}/0"
    submit(operator, sf, {"q": ["s0"]})
    placement.place_pending(sf.pk)
    assert Query.objects.get(name="q").state == Query.State.RUNNING
    assert sf.routing_versions.filter(published_at=None).exists()
    settings.REDIS_URL = redis_url
    reconcile.reconcile_cluster(
        Cluster.objects.get(pk=sf.pk), Query.objects.get(name="q").submitted_at
    )
    table = current_table(sf.pk)
    assert read_table(redis_client(), "sf", table.version) == table
    assert not sf.routing_versions.filter(published_at=None).exists()
