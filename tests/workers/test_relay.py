"""The relay hands on every batch once, whatever is restarted or lost."""

import asyncio
import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from channels.layers import get_channel_layer
from django.db import OperationalError
from redis import Redis

from controlplane.background import ingestion
from controlplane.connections import redis_client
from controlplane.events.publish import group
from controlplane.models import Cluster, Stream
from controlplane.processes.runtime.beats import last_beat_ms
from controlplane.processes.runtime.leases import Leases
from controlplane.telemetry.arrivals import ArrivalInterval
from controlplane.wire.keys import progress_key, telemetry_key
from tests.support.cluster import actor, small_cluster, telemetry
from tests.support.redis_server import RedisServer
from tests.support.series import all_samples
from workers.relay.relay import RateMeter, Relay

pytestmark = pytest.mark.django_db(transaction=True)
BEGIN_MS = 1_700_000_000_000


@pytest.fixture
def sf(redis_url: str, transactional_db: None) -> Cluster:
    """A small cluster that has been routed once."""
    return small_cluster(actor())


def write(first: int, count: int, later_s: int = 0, **changed: Any) -> None:
    """Append telemetry of one batch a second; batch b is emitted at second b + later_s."""
    for batch in range(first, first + count):
        row = telemetry(batch, BEGIN_MS + 1000 * (batch + later_s), **changed)
        redis_client().xadd(telemetry_key("sf"), {"t": json.dumps(row)}, id=f"{batch}-0")


@sync_to_async
def batches() -> list[int]:
    return [(sample["t"] - BEGIN_MS) // 1000 for sample in all_samples(Cluster.objects.get())]


async def test_a_batch_reaches_browsers_and_database(sf: Cluster, redis_url: str) -> None:
    """The channel layer's message is the stored sample."""
    layer: Any = get_channel_layer()
    channel = await layer.new_channel()
    await layer.group_add(group(sf.pk), channel)
    redis_client().xadd(
        progress_key("sf"), {"p": json.dumps({"durations_ms": {"triggerExecution": 321}})}
    )
    write(1, 1)
    relay = Relay(redis_url)
    assert await relay.step(block_ms=100) == 1
    message = await asyncio.wait_for(layer.receive(channel), 5)
    (stored,) = await sync_to_async(all_samples)(sf)
    sent = json.loads(message["text"])
    assert (message["type"], sent["type"]) == ("cluster.sample", "sample")
    # Six digits of each number are sent.
    assert sent["sample"].keys() == stored.keys()
    assert sent["sample"]["t"] == stored["t"]
    assert sent["sample"]["loads"] == pytest.approx(stored["loads"], rel=1e-5)
    assert stored["batch_ms"] == 321


async def test_a_restarted_relay_fills_the_gap_and_counts_nothing_twice(
    sf: Cluster, redis_url: str
) -> None:
    """The position is in the database, beside the samples."""
    write(1, 3)
    await Relay(redis_url).step(block_ms=100)
    write(4, 3)
    await Relay(redis_url).step(block_ms=100)
    await Relay(redis_url).step(block_ms=10)
    assert await batches() == [1, 2, 3, 4, 5, 6]


async def test_one_of_several_relays_relays(sf: Cluster, redis_url: str) -> None:
    """Another one continues where it ended."""
    other = Leases(redis_url, "relay", "another-host", term_s=60.0, alone_s=60.0)
    assert other.step(["relay"])
    relay = Relay(redis_url)
    write(1, 2)
    assert await relay.step(block_ms=10) == 0
    assert last_beat_ms(redis_client(), "relay") is not None
    other.leave()
    relay._beat_at = float("-inf")
    assert await relay.step(block_ms=100) == 2
    assert await batches() == [1, 2]


async def test_two_relays_at_a_time_store_nothing_twice(sf: Cluster, redis_url: str) -> None:
    """As where one was stopped while it had the lease."""
    stopped, other = Relay(redis_url), Relay(redis_url)
    write(1, 2)
    await stopped.step(block_ms=100)
    write(3, 2)
    await other.step(block_ms=100)
    with pytest.raises(ingestion.RelaySuperseded):
        await stopped.step(block_ms=100)
    assert await batches() == [1, 2, 3, 4]
    stopped._forget()
    write(5, 1)
    assert await stopped.step(block_ms=100) == 1
    assert await batches() == [1, 2, 3, 4, 5]


async def test_what_could_not_be_stored_is_read_again(
    sf: Cluster, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database is away for one transaction: the sample is stored by the next try."""
    relay = Relay(redis_url)
    write(1, 2)
    whole = ingestion.store

    def away(*_: Any) -> None:
        raise OperationalError("database is locked")

    monkeypatch.setattr(ingestion, "store", away)
    with pytest.raises(OperationalError):
        await relay.step(block_ms=100)
    monkeypatch.setattr(ingestion, "store", whole)
    assert await relay.step(block_ms=100) == 2
    assert await batches() == [1, 2]


async def test_a_redis_that_lost_its_data_is_read_from_the_start(
    sf: Cluster, redis_url: str
) -> None:
    """Batches that count from one again are not waited for until they pass the old number."""
    relay = Relay(redis_url)
    write(50, 2)
    await relay.step(block_ms=100)
    redis_client().flushdb()
    write(1, 1, later_s=99)
    relay._refreshed_at = float("-inf")
    assert await relay.step(block_ms=100) == 1
    assert await batches() == [50, 51, 100]


async def test_the_loop_waits_for_a_redis_that_is_away(
    sf: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It backs off while nothing answers, relays when Redis is there, ends when told to."""
    pauses: list[float] = []
    stop = asyncio.Event()

    async def wait(_: asyncio.Event, seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            server.start()
            with Redis.from_url(server.url) as client:
                row = telemetry(1, BEGIN_MS + 1000)
                client.xadd(telemetry_key("sf"), {"t": json.dumps(row)}, id="1-0")

    monkeypatch.setattr("workers.relay.relay._wait", wait)
    with RedisServer(tmp_path) as server:
        own = Relay(server.url)
        own._leases = Leases(server.url, "relay", "own", term_s=600.0, alone_s=600.0)
        await own.step(block_ms=10)
        server.kill()
        running = asyncio.create_task(own.run(stop))
        async with asyncio.timeout(60):
            while await batches() != [1]:
                await asyncio.sleep(0.02)
        assert not running.done()
        stop.set()
        await asyncio.wait_for(running, 60)
    assert pauses[:3] == [0.2, 0.4, 0.8]


async def test_the_relay_shows_that_it_lives(sf: Cluster, redis_url: str) -> None:
    """A heartbeat shows since when it is silent."""
    before = time.time_ns() // 1_000_000
    await Relay(redis_url).step(block_ms=10)
    beat_ms = last_beat_ms(redis_client(), "relay")
    assert beat_ms is not None
    assert beat_ms >= before


async def test_measured_rates_reach_the_streams(sf: Cluster, redis_url: str) -> None:
    """Six seconds of ten records a second are a rate of ten."""
    stream = await Stream.objects.aget(name="s0")
    write(1, 7, streams={str(stream.pk): 10})
    await Relay(redis_url).step(block_ms=100)
    await stream.arefresh_from_db()
    assert stream.rate == 10


def test_the_meter_waits_for_five_seconds_of_arrivals() -> None:
    """Intervals whose records are not known do not count."""
    start = datetime(2026, 3, 1, tzinfo=UTC)

    def interval(second: int, *, is_measured: bool = True) -> ArrivalInterval:
        begin = start + timedelta(seconds=second)
        return ArrivalInterval(begin, begin + timedelta(seconds=1), {7: 10.0}, {}, is_measured)

    meter = RateMeter()
    assert meter.add([interval(0), None, interval(1), interval(2, is_measured=False)]) is None
    due = meter.add([interval(3), interval(4), interval(5)])
    assert due == ({7: 50.0}, 5.0)
    assert meter.add([interval(6)]) is None
