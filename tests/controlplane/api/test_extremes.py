"""Generated requests with extreme values have no answer of 500 or above, and say what is wrong.

`WEIR_GENERATED_REQUESTS` sets their number: 500 by day, 20,000 in the nightly run.
"""

import os
from typing import Any, Final

import pytest
from django.db import transaction
from django.test import Client

from controlplane.api.common.examples import ORDERS_SCHEMA
from controlplane.models import Cluster
from controlplane.topology.streams import StreamSpec, register
from tests.controlplane.api.callers import scripted
from tests.controlplane.api.generated_requests import Request, requests
from tests.support.api_world import rich_cluster
from tests.support.cluster import actor

COUNT: Final = int(os.environ.get("WEIR_GENERATED_REQUESTS", "500"))
SEED: Final = int(os.environ.get("WEIR_GENERATED_SEED", "0"))


@pytest.fixture
def world(db: None, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """A cluster with a row of every kind; a feed of events ends at once."""
    monkeypatch.setattr("controlplane.api.queries.feed.LONGEST_S", 0.0)
    by = actor("operator")
    cluster = rich_cluster(by)
    # The streams that the examples of bodies are about.
    names = ("orders-north", "orders-south")
    register(by, cluster, [StreamSpec(name, schema=dict(ORDERS_SCHEMA)) for name in names])
    return cluster


@pytest.fixture
def clients(world: Cluster) -> dict[str, Client]:
    """A script of each role."""
    people = {
        role: scripted(actor(role, f"the-{role}")) for role in ("admin", "operator", "viewer")
    }
    for client in people.values():
        client.raise_request_exception = False
    return people


def sent(client: Client, request: Request) -> Any:
    """Return the answer to a request, whose changes are reverted."""
    with transaction.atomic():
        answer = client.generic(
            request.method.upper(), request.path, request.body, content_type=request.content_type
        )
        transaction.set_rollback(True)
    return answer


def test_no_generated_request_is_answered_with_an_error_of_the_server(
    world: Cluster, clients: dict[str, Client]
) -> None:
    faults = []
    for request in requests(world, COUNT, SEED):
        answer = sent(clients[request.role], request)
        if answer.status_code >= 500:
            faults.append(
                f"{answer.status_code} {request} {getattr(answer, 'exc_info', '')}"[:1500]
            )
    assert not faults, f"{len(faults)} of {COUNT}:\n" + "\n".join(faults)
