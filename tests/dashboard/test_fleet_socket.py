"""The socket of all visible clusters: who gets which events, and how often."""

from typing import Any

import pytest
from channels.db import database_sync_to_async
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.events.publish import announce, event, send_samples
from controlplane.models import Cluster, Grant
from controlplane.processes.asgi import application
from dashboard import consumers
from tests.dashboard.conftest import browser_of, sample
from tests.dashboard.sockets import Socket
from tests.support import cluster as made

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.nightly("pages")]
PATH = "/ws/fleet/"


@pytest.fixture
def clusters(transactional_db: None, redis_url: str) -> tuple[Cluster, Cluster]:
    """Two clusters without queries."""
    return (
        Cluster.objects.create(slug="sf", name="SF"),
        Cluster.objects.create(slug="web", name="Web"),
    )


def socket(client: Client | None, origin: bytes = b"http://localhost") -> Socket:
    headers = [(b"origin", origin), (b"host", b"localhost")]
    if client is not None:
        headers.append((b"cookie", f"sessionid={client.cookies['sessionid'].value}".encode()))
    return Socket(application, PATH, headers)


def viewer() -> Client:
    return browser_of(made.actor("viewer", "reader"))


def viewer_of(cluster: Cluster) -> Client:
    user = User.objects.create_user(f"viewer-of-{cluster.slug}")
    Grant.objects.create(user=user, cluster=cluster, role="viewer", granted_at=timezone.now())
    return browser_of(Actor(user))


async def connected(make: Any, *args: Any) -> Socket:
    opened = socket(await database_sync_to_async(make)(*args))
    assert await opened.connect()
    return opened


async def test_another_origin_and_users_without_a_role_are_refused(
    clusters: tuple[Cluster, Cluster],
) -> None:
    client = await database_sync_to_async(viewer)()
    assert not await socket(client, origin=b"https://evil.example").connect()
    assert not await socket(None).connect()
    nobody = await database_sync_to_async(lambda: browser_of(made.actor("", "nobody")))()
    assert not await socket(nobody).connect()


async def test_events_have_their_cluster_and_samples_are_sent_together(
    clusters: tuple[Cluster, Cluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "_FLEET_PERIOD_S", 0.4)
    opened = await connected(viewer)
    sf, web = clusters
    news = event("alert", "SF: Imbalance above limit", pk=7, state="firing", url="/x/")
    await database_sync_to_async(announce)(sf.pk, news)
    assert await opened.receive() == {"type": "event", "event": {**news, "cluster": "sf"}}
    await database_sync_to_async(send_samples)(sf.pk, [sample(1000), sample(2000)])
    first = await opened.receive()
    assert first == {"type": "samples", "samples": [{"cluster": "sf", "t": 2000}]}
    for cluster, t in ((sf, 3000), (web, 3500), (sf, 4000)):
        await database_sync_to_async(send_samples)(cluster.pk, [sample(t)])
    rest: dict[str, int] = {}
    while rest.keys() != {"sf", "web"} or rest["sf"] < 4000:
        rest |= {row["cluster"]: row["t"] for row in (await opened.receive())["samples"]}
    assert rest == {"sf": 4000, "web": 3500}
    await opened.disconnect()


async def test_a_role_on_one_cluster_receives_nothing_of_the_others(
    clusters: tuple[Cluster, Cluster],
) -> None:
    sf, web = clusters
    opened = await connected(viewer_of, sf)
    await database_sync_to_async(announce)(web.pk, event("state", "hidden"))
    await database_sync_to_async(send_samples)(web.pk, [sample(1000)])
    await database_sync_to_async(announce)(sf.pk, event("state", "shown"))
    assert (await opened.receive())["event"]["text"] == "shown"
    assert await opened.peer.receive_nothing(timeout=0.1)
    await opened.disconnect()


async def test_a_new_cluster_is_followed_by_open_sockets(
    clusters: tuple[Cluster, Cluster],
) -> None:
    opened = await connected(viewer)
    new = await database_sync_to_async(Cluster.objects.create)(slug="new", name="New")
    await database_sync_to_async(announce)(new.pk, event("state", "created"))
    assert (await opened.receive())["event"]["cluster"] == "new"
    await opened.disconnect()


async def test_missed_samples_are_requested_after_a_gap(
    clusters: tuple[Cluster, Cluster],
) -> None:
    seen = timezone.now().replace(microsecond=0)
    await database_sync_to_async(
        lambda: Cluster.objects.filter(slug="web").update(last_sample_at=seen)
    )()
    opened = await connected(viewer)
    t = round(seen.timestamp() * 1000)
    for since, expected in ((0, [{"cluster": "web", "t": t}]), (t, [])):
        await opened.send({"since": since})
        assert (await opened.receive())["samples"] == expected
    await opened.disconnect()
