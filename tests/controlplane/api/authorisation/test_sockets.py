"""Every caller at every socket: let in, and sent messages, exactly where the rules say so."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import pytest
from asgiref.sync import sync_to_async
from channels.layers import get_channel_layer
from django.contrib.auth.models import User
from django.test import Client

from controlplane.access.logins.changes import access_group
from controlplane.access.roles import ROLES
from controlplane.events.publish import FLEET, event, group, sample_message
from controlplane.models import Cluster
from controlplane.processes.asgi import application
from tests.controlplane.api.authorisation import rules
from tests.controlplane.api.authorisation.test_matrix import may
from tests.controlplane.api.callers import granted, user_of
from tests.dashboard.sockets import Socket
from tests.support.api_world import address_of
from tests.support.cluster import actor

pytestmark = pytest.mark.django_db(transaction=True)
ACCESS_ENDED: Final = 4401
FLEET_ROUTE: Final = "ws/fleet/"
ANSWERS: Final = {
    "receive_json": "samples", "cluster_sample": "sample", "cluster_event": "event",
    "fleet_sample": "samples", "fleet_event": "event",
}  # fmt: skip


@pytest.fixture
def cluster(transactional_db: None, redis_url: str) -> Cluster:
    """A cluster without streams and queries."""
    return Cluster.objects.create(slug="sf", name="SF")


def browsers() -> dict[str, tuple[Client | None, int]]:
    """Return the browser and user id of each caller of the matrix."""
    other = Cluster.objects.create(slug="nyc", name="NYC")
    people = {role: actor(role, f"the-{role}") for role in ROLES}
    people |= {"nobody": actor("", "nobody"), "foreign": granted("admin", other, "foreign")}
    clients: dict[str, tuple[Client | None, int]] = {"anonymous": (None, 0)}
    for name, person in people.items():
        client = Client()
        client.force_login(user_of(person))
        clients[name] = (client, user_of(person).pk)
    return clients


def socket_of(client: Client | None, path: str) -> Socket:
    headers = [(b"origin", b"http://localhost"), (b"host", b"localhost")]
    if client is not None:
        headers.append((b"cookie", f"sessionid={client.cookies['sessionid'].value}".encode()))
    return Socket(application, path, headers)


async def send_to(name: str, message: dict[str, Any]) -> None:
    layer = get_channel_layer()
    assert layer is not None
    await layer.group_send(name, message)


def messages(
    route: str, socket: Socket, pk: int, user: int
) -> dict[str, Callable[[], Awaitable[None]]]:
    """Return what makes the socket of a route handle each of its messages."""
    news = event("routing", "Placed 1", version=4)
    common: dict[str, Callable[[], Awaitable[None]]] = {
        "receive_json": lambda: socket.send({"since": 0}),
        "access_changed": lambda: send_to(access_group(user), {"type": "access.changed"}),
    }
    if route == FLEET_ROUTE:
        return common | {
            "fleet_sample": lambda: send_to(
                FLEET, {"type": "fleet.sample", "cluster": pk, "t": 1000}
            ),
            "fleet_event": lambda: send_to(
                FLEET, {"type": "fleet.event", "cluster": pk, "event": news}
            ),
        }
    return common | {
        "cluster_sample": lambda: send_to(group(pk), sample_message({})),
        "cluster_event": lambda: send_to(group(pk), {"type": "cluster.event", "event": news}),
    }


async def test_sockets_let_in_whom_the_rules_name(cluster: Cluster) -> None:
    """A socket that is let in handles each message that the rules allow its caller."""
    clients = await sync_to_async(browsers)()
    handled: set[str] = set()
    for route, audience in rules.SOCKETS.items():
        path = "/" + address_of(route, cluster)
        for caller, (client, user) in clients.items():
            socket = socket_of(client, path)
            assert await socket.connect() == may(caller, audience), (route, caller)
            if not may(caller, audience):
                continue
            senders = messages(route, socket, cluster.pk, user)
            handled |= senders.keys()
            # Access has not ended: the socket goes on, so the later messages are answered.
            await senders.pop("access_changed")()
            for name, send in senders.items():
                await send()
                if may(caller, rules.SOCKET_MESSAGES[name]):
                    assert (await socket.receive())["type"] == ANSWERS[name], (name, caller)
                else:
                    assert await socket.peer.receive_nothing(timeout=0.1), (name, caller)
            await socket.disconnect()
    assert handled == rules.SOCKET_MESSAGES.keys()


@pytest.mark.parametrize("route", rules.SOCKETS)
async def test_no_message_reaches_a_socket_whose_role_has_ended(
    cluster: Cluster, route: str
) -> None:
    clients = await sync_to_async(browsers)()
    path = "/" + address_of(route, cluster)
    for role in ROLES:
        client, user = clients[role]
        assert client is not None
        socket = socket_of(client, path)
        assert await socket.connect()
        await sync_to_async(_end_roles)(user)
        senders = messages(route, socket, cluster.pk, user)
        await senders.pop("access_changed")()
        closing = await socket.peer.receive_output(timeout=60)
        assert (closing["type"], closing["code"]) == ("websocket.close", ACCESS_ENDED)
        for send in senders.values():
            await send()
        assert await socket.peer.receive_nothing(timeout=0.1), role
        await socket.disconnect()


def _end_roles(user: int) -> None:
    # Without the signals, which would close the socket before the message does.
    User.groups.through.objects.filter(user_id=user).delete()


async def test_a_foreign_cluster_is_an_unknown_one(cluster: Cluster) -> None:
    """The handshake is refused in the same way, whatever the role elsewhere."""
    client, _ = (await sync_to_async(browsers)())["foreign"]
    answers = []
    for slug in ("sf", "xyz"):
        socket = socket_of(client, f"/ws/clusters/{slug}/")
        await socket.peer.send_input({"type": "websocket.connect"})
        answers.append(await socket.peer.receive_output(timeout=60))
    assert answers[0] == answers[1]
    assert answers[0]["type"] == "websocket.close"
