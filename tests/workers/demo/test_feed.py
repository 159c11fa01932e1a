from threading import Event
from typing import Any, cast

import pytest
import redis

from controlplane.wire import keys
from controlplane.wire.errors import LogFull
from controlplane.wire.log.redis_log import RedisLog
from controlplane.wire.log.values import START, LogPosition
from controlplane.wire.producer import Producer
from controlplane.wire.records.record_codec import decode_block
from workers.demo.recording import REPORT, Recording
from workers.demo.replay import LONGEST_STEP_S, Feed, StoredMoment, next_moment
from workers.demo.taxis import Taxis

SPEED = 60.0


def feed_of(recording: Recording, client: "redis.Redis", url: str, limit: int = 10**6) -> Feed:
    streams = {tile.name: 500 + number for number, tile in enumerate(recording.tiles)}
    producer = Producer(url, "sf", limit, schemas=dict.fromkeys(streams.values(), REPORT))
    taxis = Taxis(SPEED, 0, recording)
    return Feed(taxis, streams, producer, StoredMoment(client, "sf"), SPEED)


def logged(client: "redis.Redis") -> int:
    return RedisLog(client, "sf").position_after(LogPosition(START, 0), 10**9).total


def reports_up_to(recording: Recording, moment: int) -> int:
    return int((recording.positions.at <= moment).sum())


@pytest.mark.parametrize(
    ("elapsed_s", "moved_ms"), [(0.5, 30_000), (0.0, 0), (-1.0, 0), (3600.0, 120_000)]
)
def test_time_passes_at_the_chosen_speed_and_never_jumps(elapsed_s: float, moved_ms: int) -> None:
    """A laptop that slept an hour goes on where it was."""
    assert next_moment(1_000, elapsed_s, SPEED) == 1_000 + moved_ms
    assert LONGEST_STEP_S == 2.0


def test_one_tick_is_one_append_with_the_reports_of_all_streams(
    recording: Recording, client: "redis.Redis", demo_redis_url: str
) -> None:
    feed = feed_of(recording, client, demo_redis_url)
    feed.advance(0.5)
    assert client.xlen(keys.index_key("sf")) == 1
    assert logged(client) == reports_up_to(recording, feed.moment) > 100


def test_a_stream_gets_the_reports_of_its_tile(
    recording: Recording, client: "redis.Redis", demo_redis_url: str
) -> None:
    feed_of(recording, client, demo_redis_url).advance(0.5)
    (entry,) = cast("list[Any]", client.xrange(keys.log_key("sf", 500)))
    batch = decode_block(entry[1][b"b"]).records
    places = zip(batch["x"].to_pylist(), batch["y"].to_pylist(), strict=True)
    tile = recording.tiles[0]
    assert {((x or 0) // 1000, (y or 0) // 1000) for x, y in places} == {(tile.x, tile.y)}


def test_a_new_process_goes_on_where_the_last_one_stood(
    recording: Recording, client: "redis.Redis", demo_redis_url: str
) -> None:
    """Nothing is missed and nothing comes twice over an orderly restart."""
    for _ in range(4):
        feed = feed_of(recording, client, demo_redis_url)
        feed.advance(0.5)
    assert feed.moment == 4 * 30_000 - 1
    assert logged(client) == reports_up_to(recording, feed.moment)


def test_a_full_log_stops_the_replay_where_it_is(
    recording: Recording, client: "redis.Redis", demo_redis_url: str
) -> None:
    """What was refused is fed again once there is room: no report is lost."""
    feed_of(recording, client, demo_redis_url).advance(0.5)
    feed = feed_of(recording, client, demo_redis_url, limit=1)
    stood = feed.moment
    with pytest.raises(LogFull):
        feed.advance(0.5)
    assert feed.moment == stood == StoredMoment(client, "sf").read()


def test_running_ends_when_told(
    recording: Recording, client: "redis.Redis", demo_redis_url: str
) -> None:
    stop = Event()
    stop.set()
    feed = feed_of(recording, client, demo_redis_url)
    feed.run(stop)
    assert feed.moment == -1
