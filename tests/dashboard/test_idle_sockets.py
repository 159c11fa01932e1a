"""Sockets of quiet clusters stay open, and end in order when Redis is lost."""

import asyncio
import json
import logging
from pathlib import Path
from typing import Any, Final

import pytest
from channels.db import database_sync_to_async
from channels.layers import channel_layers, get_channel_layer
from django.test import Client
from pytest_django import Settings

from controlplane.events.publish import group, sample_message
from controlplane.models import Cluster
from controlplane.processes.asgi import application
from controlplane.processes.serving.sockets import TRY_AGAIN_LATER
from controlplane.wire.redis_clients import CHANNEL_BLOCK_S, channel_host
from tests.dashboard.conftest import browser_of, sample
from tests.dashboard.sockets import Socket
from tests.support import cluster as made
from tests.support.nightly import NIGHTLY
from tests.support.redis_server import running_redis

pytestmark = pytest.mark.django_db(transaction=True)
# Longer than redis-py's default time-out of reads, which ended quiet sockets.
IDLE_S: Final = 30.0 if NIGHTLY else 5.3


@pytest.fixture
def cluster(transactional_db: None) -> Cluster:
    """A cluster without samples or events."""
    return made.small_cluster(made.actor("operator"))


async def sockets(number: int) -> list[Socket]:
    """Return connected sockets of the cluster."""

    def log_in() -> Client:
        return browser_of(made.actor("viewer", "reader"))

    client = await database_sync_to_async(log_in)()
    cookie = f"sessionid={client.cookies['sessionid'].value}".encode()
    headers = [(b"origin", b"http://localhost"), (b"host", b"localhost"), (b"cookie", cookie)]
    opened = [Socket(application, "/ws/clusters/sf/", headers) for _ in range(number)]
    assert all([await socket.connect() for socket in opened])
    return opened


@pytest.mark.nightly("requests", by_day=True)
async def test_idle_sockets_stay_open(redis_url: str, cluster: Cluster) -> None:
    """Each of them receives the sample that ends the silence; all were silent at once."""
    opened = await sockets(3)
    layer: Any = get_channel_layer()
    pool = layer.connection(0).connection_pool
    assert layer.brpop_timeout == CHANNEL_BLOCK_S
    assert pool.make_connection().socket_timeout > layer.brpop_timeout
    ended, _ = await asyncio.wait([socket.peer.future for socket in opened], timeout=IDLE_S)
    assert not ended
    message = sample_message(sample(1000))
    await layer.group_send(group(cluster.pk), message)
    for socket in opened:
        assert await socket.receive() == json.loads(message["text"])
        await socket.disconnect()


async def test_a_lost_redis_ends_sockets_without_a_traceback(
    tmp_path: Path, cluster: Cluster, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    """The browser reconnects by its own; the log has one line per socket."""
    default = settings.CHANNEL_LAYERS["default"]
    with running_redis(tmp_path) as url:
        config = {**default["CONFIG"], "hosts": [channel_host(url)]}
        settings.CHANNEL_LAYERS = {"default": {**default, "CONFIG": config}}
        channel_layers.backends.clear()
        (socket,) = await sockets(1)
    ending = await socket.peer.receive_output(timeout=60)
    assert ending == {"type": "websocket.close", "code": TRY_AGAIN_LATER}
    await socket.peer.wait(timeout=60)
    channel_layers.backends.clear()
    name = "controlplane.processes.serving.sockets"
    lines = [record for record in caplog.records if record.name == name]
    assert len(lines) == 1
    assert lines[0].levelno == logging.WARNING
    assert not any(record.exc_info for record in caplog.records)
