"""The socket of a cluster, behind the real composition root and a real Redis."""

import json
from typing import Any

import pytest
from channels.db import database_sync_to_async
from channels.layers import get_channel_layer
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from controlplane.access.roles import Actor
from controlplane.events.publish import event, group, sample_message
from controlplane.models import Cluster, Grant
from controlplane.processes.asgi import application
from tests.dashboard.conftest import add_samples, browser_of, sample
from tests.dashboard.sockets import Socket
from tests.support import cluster as made

pytestmark = pytest.mark.django_db(transaction=True)
HOME = b"http://localhost"
PATH = "/ws/clusters/sf/"


@pytest.fixture
def cluster(transactional_db: None, redis_url: str) -> Cluster:
    """A cluster without queries or samples."""
    return made.small_cluster(made.actor("operator"))


def socket(client: Client | None, origin: bytes = HOME, path: str = PATH) -> Socket:
    """Return a browser's socket with the cookies of a client."""
    headers = [(b"origin", origin), (b"host", b"localhost")]
    if client is not None:
        headers.append((b"cookie", f"sessionid={client.cookies['sessionid'].value}".encode()))
    return Socket(application, path, headers)


async def person(role: str) -> Client:
    """Return the browser of somebody with the role."""
    return await database_sync_to_async(lambda: browser_of(made.actor(role, f"one-{role}")))()


async def connects(communicator: Socket) -> bool:
    """Tell whether the handshake ends well, and hang up."""
    connected = await communicator.connect()
    if connected:
        await communicator.disconnect()
    return connected


async def test_a_viewer_is_let_in(cluster: Cluster) -> None:
    assert await connects(socket(await person("viewer")))


async def test_who_is_not_logged_in_is_refused(cluster: Cluster) -> None:
    assert not await connects(socket(None))


async def test_who_has_no_role_is_refused(cluster: Cluster) -> None:
    """A user account alone shows nothing."""
    assert not await connects(socket(await person("")))


async def test_a_role_on_this_cluster_is_enough_and_one_elsewhere_is_not(cluster: Cluster) -> None:
    def granted(to: Cluster) -> Client:
        user = User.objects.create_user(f"viewer-of-{to.slug}")
        Grant.objects.create(user=user, cluster=to, role="viewer", granted_at=timezone.now())
        return browser_of(Actor(user))

    def both() -> tuple[Client, Client]:
        return granted(cluster), granted(Cluster.objects.create(slug="other", name="Elsewhere"))

    here, elsewhere = await database_sync_to_async(both)()
    assert await connects(socket(here))
    assert not await connects(socket(elsewhere))


async def test_a_foreign_origin_is_refused(cluster: Cluster) -> None:
    """Another site must not read along with the cookies of its visitor."""
    viewer = await person("viewer")
    assert not await connects(socket(viewer, origin=b"https://evil.example"))


async def test_an_unknown_cluster_is_refused(cluster: Cluster) -> None:
    viewer = await person("viewer")
    assert not await connects(socket(viewer, path="/ws/clusters/nowhere/"))


async def test_the_gap_is_filled_from_stored_samples(cluster: Cluster) -> None:
    """What a browser missed while it was away comes with its first message."""
    stored = await database_sync_to_async(add_samples)(cluster)
    communicator = socket(await person("viewer"))
    await communicator.connect()
    before = 1000 * timezone.now().timestamp()
    await communicator.send({"since": stored[-3]["t"]})
    answer = await communicator.receive()
    await communicator.disconnect()
    assert before - 1 <= answer["now"] <= 1000 * timezone.now().timestamp() + 1
    assert answer["type"] == "samples"
    assert [one["t"] for one in answer["samples"]] == [stored[-2]["t"], stored[-1]["t"]]


async def test_samples_and_events_are_forwarded(cluster: Cluster) -> None:
    communicator = socket(await person("viewer"))
    await communicator.connect()
    layer = get_channel_layer()
    assert layer is not None
    told, measured = event("routing", "Placed 1", version=4), sample(1000)
    message = sample_message(measured)
    await layer.group_send(group(cluster.pk), message)
    await layer.group_send(group(cluster.pk), {"type": "cluster.event", "event": told})
    assert await communicator.receive() == json.loads(message["text"])
    assert await communicator.receive() == {"type": "event", "event": told}
    await communicator.disconnect()


@pytest.mark.parametrize("nonsense", [{"since": "x"}, {"since": None}, {}, [], 7, {"since": 1e300}])
async def test_nonsense_does_not_end_the_socket(cluster: Cluster, nonsense: Any) -> None:
    """A faulty script must not make its browser reconnect for ever."""
    communicator = socket(await person("viewer"))
    await communicator.connect()
    await communicator.send(nonsense)
    await communicator.send({"since": 0})
    answer = await communicator.receive()
    assert answer["samples"] == []
    await communicator.disconnect()


def test_actors_live_for_one_request(cluster: Cluster) -> None:
    """Roles are read once per actor: a new handshake sees a role that was taken away."""
    actor = made.actor("viewer", "leaving")
    assert actor.is_viewer
    actor.user.groups.clear()  # type: ignore[union-attr]
    assert not Actor(actor.user).is_viewer


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ({"text": "{not json"}, 1007),
        ({"text": "[" * 10_000}, 1007),
        ({"text": "\ud800"}, 1007),
        ({"text": '{"since": 1, "since": 2}'}, 1007),
        ({"text": None, "bytes": b"{}"}, 1003),
    ],
)
async def test_a_malformed_message_closes_the_socket(
    cluster: Cluster, message: dict[str, Any], code: int
) -> None:
    """It raised in the server, which logged a traceback for each."""
    page = socket(await person("viewer"))
    assert await page.connect()
    await page.peer.send_input({"type": "websocket.receive", **message})
    closed = await page.peer.receive_output(timeout=60)
    assert (closed["type"], closed["code"]) == ("websocket.close", code)
    await page.disconnect()


async def test_moments_that_no_clock_has_are_ignored(cluster: Cluster) -> None:
    page = socket(await person("viewer"))
    assert await page.connect()
    for moment in (10**300, -1, True, 1e300, "1"):
        await page.send({"since": moment})
    await page.send({"since": 0})
    assert (await page.receive())["samples"] == []
    await page.disconnect()


async def test_sockets_of_a_user_and_their_messages_are_limited(
    cluster: Cluster, settings: Settings
) -> None:
    settings.MAX_SOCKETS_PER_USER = 1
    settings.MAX_SOCKET_MESSAGES = 2
    viewer = await person("viewer")
    page = socket(viewer)
    assert await page.connect()
    assert not await connects(socket(viewer))
    for _ in range(3):
        await page.send({})
    closed = await page.peer.receive_output(timeout=60)
    assert (closed["type"], closed["code"]) == ("websocket.close", 1008)
    await page.disconnect()
    assert await connects(socket(viewer))
