"""A database that is away for a while: requests are answered, and everything continues after it."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, close_old_connections
from django.test import Client
from pytest_django.plugin import DjangoDbBlocker

from controlplane.access.roles import Actor
from controlplane.models import Cluster
from tests.support.cluster import actor, small_cluster
from tests.support.postgres import as_default, database_of, postgres_with_outages
from workers.agent import fleet
from workers.agent.causes import Death

if TYPE_CHECKING:
    from tests.support.databases import Templates

TIMEOUT_S = 60.0


@pytest.fixture
def outage(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, templates: "Templates"
) -> Iterator[Any]:
    """What stops the PostgreSQL of the test for the time of a block."""
    with (
        django_db_blocker.unblock(),
        postgres_with_outages(templates.postgres()) as (url, outage),
        as_default(database_of(url)),
    ):
        yield outage


def browser() -> Client:
    client = Client(raise_request_exception=False)
    client.force_login(User.objects.get())
    return client


def test_a_stopped_server_is_ridden_out(outage: Any, redis_url: str) -> None:
    """By pages, the API and the agent, in the same processes; nothing acknowledged is lost."""
    by: Actor = actor()
    small_cluster(by)
    client = browser()
    assert client.get("/clusters/sf/").status_code == 200
    deaths = fleet.Deaths()
    deaths.add("sf", Death(time.time(), "exit", "ended"))
    with outage():
        for path in ("/clusters/sf/", "/api/v1/clusters/sf", "/login/"):
            answers = [client.get(path) for _ in range(2)]
            assert [answer.status_code for answer in answers] == [503, 503]
            assert {answer["Retry-After"] for answer in answers} == {"2"}
        # A probe has no session.
        assert Client().get("/healthz").status_code == 200
        for _ in range(2):
            close_old_connections()
            with pytest.raises(OperationalError):
                fleet.wanted_drivers()
            with pytest.raises(OperationalError):
                deaths.flush()
    close_old_connections()
    assert fleet.wanted_drivers().keys() == {"sf"}
    deaths.flush()
    assert Cluster.objects.get().restarts.count() == 1
    assert client.get("/clusters/sf/").status_code == 200
    assert client.get("/api/v1/clusters/sf").status_code == 200
