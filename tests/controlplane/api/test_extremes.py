"""Generated requests with extreme values have no answer of 500 or above, and say what is wrong.

100 of them by day, 20,000 by night.
"""

from http import HTTPStatus
from typing import Any, Final

import pytest
from django.db import transaction
from django.test import Client

from controlplane.api.common.examples import ORDERS_SCHEMA
from controlplane.explain.drafts import preview as previews
from controlplane.models import Cluster
from controlplane.topology.streams import StreamSpec, register
from tests.controlplane.api.callers import scripted
from tests.controlplane.api.generated_requests import Request, requests
from tests.support.api_world import rich_cluster
from tests.support.cluster import actor
from tests.support.nightly import NIGHTLY

# Requests of one test.
PART: Final = 500 if NIGHTLY else 100
PARTS: Final = 40 if NIGHTLY else 1
# No worker runs here, which would compute a valid preview.
NO_WORKER: Final = b'"code": "preview_away"'


@pytest.fixture
def world(db: None, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """A cluster with a row of every kind; a feed of events ends at once."""
    monkeypatch.setattr("controlplane.api.queries.feed.LONGEST_S", 0.0)
    monkeypatch.setattr(previews, "WAIT_S", 0.1)
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


@pytest.mark.nightly("requests", by_day=True)
@pytest.mark.both_databases
@pytest.mark.parametrize("part", range(PARTS))
def test_no_generated_request_breaks(world: Cluster, clients: dict[str, Client], part: int) -> None:
    """The answer is documented, and a refusal says what is wrong."""
    faults = []
    for request in requests(world, PART, part):
        answer = sent(clients[request.role], request)
        if answer.status_code >= 500 and NO_WORKER not in answer.content:
            info = getattr(answer, "exc_info", None) or (None, answer.content)
            faults.append(f"{answer.status_code} {request}: {info[1]!r}"[:1_000])
        elif 400 <= answer.status_code < 500:
            body = answer.json()
            if body["detail"] in ("", f"{HTTPStatus(answer.status_code).phrase}."):
                faults.append(f"{answer.status_code} without a reason: {request}"[:1_000])
    assert not faults, f"{len(faults)} of {PART}:\n" + "\n".join(faults)
