"""What users may not do is recorded: first refusals one by one, others counted."""

from typing import Any

import pytest
from channels.db import database_sync_to_async
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from controlplane.access import audit, tokens
from controlplane.access.audit import LOGGED, PERIOD, AuditFilters, audit_listing
from controlplane.access.roles import Actor
from controlplane.background.retention import history
from controlplane.models import AuditEntry, Cluster, RoutineActions
from controlplane.processes.asgi import application
from tests.dashboard.sockets import Socket
from tests.support import cluster as made

pytestmark = pytest.mark.nightly("access")

JSON = "application/json"
ADDRESS = "198.51.100.7"


def person(role: str, name: str) -> tuple[User, Client]:
    user = made.actor(role, name).user
    assert isinstance(user, User)
    client = Client(REMOTE_ADDR=ADDRESS)
    client.force_login(user)
    return user, client


def entries() -> list[AuditEntry]:
    return list(AuditEntry.objects.filter(action=audit.REFUSED).order_by("pk"))


@pytest.fixture
def sf(db: None) -> Cluster:
    return Cluster.objects.create(slug="sf", name="SF")


def test_a_refused_page_and_a_refused_operation_are_recorded(sf: Cluster) -> None:
    """Of sessions and of tokens, with what was missing."""
    user, client = person("viewer", "vera")
    assert client.post("/clusters/sf/stop/").status_code == 403
    assert client.post("/api/v1/clusters/sf/stop", {}, content_type=JSON).status_code == 403
    script = Client(
        headers={"Authorization": f"Bearer {tokens.create(user, 'n')}"}, REMOTE_ADDR=ADDRESS
    )
    assert script.post("/api/v1/tokens", {"name": "n"}, content_type=JSON).status_code == 403
    page, operation, by_token = entries()
    assert {entry.actor for entry in (page, operation, by_token)} == {"vera"}
    assert {entry.address for entry in (page, operation, by_token)} == {ADDRESS}
    assert page.object == "POST /clusters/sf/stop/"
    assert operation.object == "POST /api/v1/clusters/sf/stop"
    assert page.cluster == operation.cluster == sf
    assert page.reason == operation.reason == "This needs the role operator"
    assert by_token.object == "POST /api/v1/tokens"
    assert page.request


def test_refused_metrics_name_the_user_of_the_token(sf: Cluster) -> None:
    user, _ = person("", "nobody")
    script = Client(headers={"Authorization": f"Bearer {tokens.create(user, 'n')}"})
    assert script.get("/metrics").status_code == 403
    (entry,) = entries()
    assert (entry.actor, entry.object) == ("nobody", "GET /metrics")


def test_what_is_allowed_or_anonymous_is_not_recorded(sf: Cluster) -> None:
    _, client = person("operator", "olga")
    assert client.get("/clusters/sf/").status_code == 200
    assert client.get("/clusters/unknown/").status_code == 404
    assert Client().post("/clusters/sf/stop/").status_code == 302
    assert Client().get("/api/v1/clusters/sf").status_code == 401
    assert not entries()


def test_refusals_cannot_flood_the_audit_log(sf: Cluster) -> None:
    """The same action again, and many different actions of a user."""
    user, client = person("viewer", "vera")
    for _ in range(LOGGED - 5):
        client.post("/clusters/sf/stop/")
    for number in range(100):
        cluster = Cluster.objects.create(slug=f"c{number}", name="C") if number % 2 else sf
        actor = Actor(user, ADDRESS, token=number or None)
        audit.record_refusal(actor, f"POST /operation/{number}", cluster=cluster)
    assert len(entries()) == LOGGED
    assert RoutineActions.objects.filter(action=audit.REFUSED).count() == 1
    history.log_routine_actions(timezone.now() + PERIOD)
    counted = entries()[-1]
    assert (counted.actor, counted.object) == ("vera", "95 more")
    assert (counted.after["count"], counted.cluster) == (95, None)
    assert not RoutineActions.objects.exists()


def test_refusals_are_for_admins_and_the_person_concerned(sf: Cluster) -> None:
    user, client = person("viewer", "vera")
    other, _ = person("approver", "otto")
    admin, _ = person("admin", "root")
    client.post("/clusters/sf/stop/")

    def seen(reader: User) -> int:
        filters = AuditFilters(action=audit.REFUSED, reader=Actor(reader))
        return len(audit_listing(filters).page.rows)

    assert (seen(user), seen(other), seen(admin)) == (1, 0, 1)


@pytest.mark.django_db(transaction=True)
async def test_a_refused_socket_is_recorded(redis_url: str) -> None:
    def nobody() -> Client:
        Cluster.objects.create(slug="sf", name="SF")
        return person("", "nobody")[1]

    client = await database_sync_to_async(nobody)()
    cookie = f"sessionid={client.cookies['sessionid'].value}".encode()
    headers = [(b"origin", b"http://localhost"), (b"host", b"localhost")]
    for more in ([], [(b"cookie", cookie)], [(b"cookie", cookie)]):
        socket: Any = Socket(application, "/ws/clusters/sf/", [*headers, *more])
        assert not await socket.connect()
    entry, _ = await database_sync_to_async(entries)()
    assert (entry.actor, entry.object) == ("nobody", "WebSocket /ws/clusters/sf/")
