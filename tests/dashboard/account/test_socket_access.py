"""Sockets and feeds end with what authorized them: at once on a change, and periodically."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from channels.db import database_sync_to_async
from channels.layers import get_channel_layer
from django.contrib.auth.models import Group, User
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from controlplane.access import tokens
from controlplane.access.logins import login_sessions
from controlplane.access.logins.connection_access import ConnectionAccess, while_authorized
from controlplane.access.roles import Actor
from controlplane.events.publish import group, sample_message
from controlplane.models import ApiToken, Cluster, Grant, LoginSession
from controlplane.processes.asgi import application
from dashboard.consumers import ACCESS_ENDED
from tests.dashboard.conftest import sample
from tests.dashboard.sockets import Socket
from tests.support import cluster as made

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.nightly("pages")]
PASSWORD = "a long enough password"
# Within which a change ends a socket; generous to a busy machine, far below the periodic check.
SOON_S = 5.0


@pytest.fixture
def cluster(transactional_db: None, redis_url: str) -> Cluster:
    return made.small_cluster(made.actor("operator"))


def viewer(cluster: Cluster) -> tuple[User, Client]:
    """Return a viewer by a group and by a grant, and their browser."""
    user = User.objects.create_user("alice", password=PASSWORD)
    Grant.objects.create(user=user, cluster=cluster, role="viewer", granted_at=timezone.now())
    client = Client()
    client.force_login(user)
    return user, client


def socket_of(client: Client) -> Socket:
    cookie = f"sessionid={client.cookies['sessionid'].value}".encode()
    headers = [(b"origin", b"http://localhost"), (b"host", b"localhost"), (b"cookie", cookie)]
    return Socket(application, "/ws/clusters/sf/", headers)


async def end_code(socket: Socket) -> int:
    """Return the code with which the server closes the socket; it sends nothing before."""
    message = await socket.peer.receive_output(timeout=SOON_S)
    assert message["type"] == "websocket.close", message
    return int(message["code"])


def log_out(user: User, client: Client) -> None:
    client.post("/logout/")


def log_out_everywhere(user: User, client: Client) -> None:
    other = Client()
    other.force_login(user)
    made.confirmed(other).post("/account/sessions/end/")


def end_the_sessions(user: User, client: Client) -> None:
    """By an administrator."""
    login_sessions.end_all_of(made.actor("admin", "root"), user.username)


def take_the_grant(user: User, client: Client) -> None:
    Grant.objects.get(user=user).delete()


def deactivate(user: User, client: Client) -> None:
    user.is_active = False
    user.save()


def change_password(user: User, client: Client) -> None:
    """In another browser, which goes on."""
    other = Client()
    other.force_login(user)
    form = {
        "current": PASSWORD,
        "new": "another long password",
        "repeated": "another long password",
    }
    assert other.post("/account/password/", form).status_code == 302


@pytest.mark.parametrize(
    "change",
    [log_out, log_out_everywhere, end_the_sessions, take_the_grant, deactivate, change_password],
)
async def test_a_change_of_access_ends_the_socket(
    cluster: Cluster, change: Callable[[User, Client], None]
) -> None:
    """The period of checks is 30 s: the change itself ends it, and no sample follows."""
    user, client = await database_sync_to_async(viewer)(cluster)
    socket = socket_of(client)
    assert await socket.connect()
    await database_sync_to_async(change)(user, client)
    assert await end_code(socket) == ACCESS_ENDED
    layer: Any = get_channel_layer()
    await layer.group_send(group(cluster.pk), sample_message(sample(1)))
    assert await socket.peer.receive_nothing(timeout=0.2)
    await socket.disconnect()
    assert not await socket_of(client).connect()


async def test_a_changed_role_that_still_suffices_keeps_the_socket(cluster: Cluster) -> None:
    user, client = await database_sync_to_async(viewer)(cluster)
    socket = socket_of(client)
    assert await socket.connect()

    def add_role() -> None:
        user.groups.add(Group.objects.get_or_create(name="approver")[0])
        Grant.objects.get(user=user).delete()

    await database_sync_to_async(add_role)()
    layer: Any = get_channel_layer()
    await layer.group_send(group(cluster.pk), sample_message(sample(1)))
    assert (await socket.receive())["type"] == "sample"
    await socket.disconnect()


async def test_a_change_that_sends_no_message_ends_the_socket_by_the_period(
    cluster: Cluster, settings: Settings
) -> None:
    """An expired session, and rows that were changed by a query."""
    settings.ACCESS_RECHECK_S = 0.05
    _, client = await database_sync_to_async(viewer)(cluster)
    socket = socket_of(client)
    assert await socket.connect()
    idle = timezone.now() - settings.SESSION_IDLE - timedelta(minutes=1)
    await database_sync_to_async(LoginSession.objects.update)(seen_at=idle)
    assert await end_code(socket) == ACCESS_ENDED
    await socket.disconnect()


async def endless() -> Any:
    number = 0
    while True:
        yield f"{number}\n"
        number += 1
        await asyncio.sleep(3600 if number > 1 else 0)


@pytest.mark.parametrize("by", ["revoked", "expired"])
async def test_a_feed_ends_with_its_token(cluster: Cluster, settings: Settings, by: str) -> None:
    """Also while it waits for the next event."""

    def script() -> ApiToken:
        user = made.actor("viewer", "script").user
        assert isinstance(user, User)
        tokens.create(user, "feed")
        return ApiToken.objects.get(user=user)

    def end(row: ApiToken) -> None:
        if by == "revoked":
            tokens.revoke(Actor(row.user), row.pk)
        else:
            ApiToken.objects.filter(pk=row.pk).update(expires_at=timezone.now())

    if by == "expired":
        settings.ACCESS_RECHECK_S = 0.05
    row = await database_sync_to_async(script)()
    lines = while_authorized(ConnectionAccess(cluster, token=row.pk), endless())
    assert await anext(lines) == "0\n"
    ended = asyncio.ensure_future(anext(lines, None))
    await database_sync_to_async(end)(row)
    assert await asyncio.wait_for(ended, SOON_S) in ("1\n", None)
    assert await asyncio.wait_for(anext(lines, None), SOON_S) is None
