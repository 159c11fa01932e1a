"""A driver killed with -9 loses no record and doubles none.

Real taxi reports flow through a real application, kept by a real agent, while queries come, go and
move. The driver is killed first, then the agent. Every window of every query is then compared with
a computation that knows only the input, the routing operations, and which span of the log each
batch had.
"""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import redis

from controlplane.wire import keys
from controlplane.wire.log.values import START
from controlplane.wire.producer import Producer
from controlplane.wire.query_text import QueryText
from controlplane.wire.routing.actions import Action
from controlplane.wire.routing.query_actions import AddQuery, MoveTasks, RemoveQuery, RestartQuery
from tests.support.driver import KeptDriver
from tests.support.schemas import assigned
from tests.support.taxi import STREAMS, taxi_reports
from tests.support.texts import SUMMARY_TEXT
from tests.workers.pipeline.schedules.world import World

# A query over all streams, split over eight tasks by the car, with windows that overlap.
SPREAD = 40
SPREAD_TEXT = QueryText(
    {"n": "count(*)", "valued": "count(speed)", "total": "sum(speed)", "high": "max(speed)"},
    where="car % 7 <> 3",
    key=["car"],
    window_s=60.0,
    slide_s=20.0,
)


# By day the random schedules kill the driver at every phase, with all kinds of plans.
@pytest.mark.nightly("spark")
@pytest.mark.spark
def test_two_kills_lose_and_double_nothing(
    redis_client: "redis.Redis", redis_server: str, tmp_path: Path
) -> None:
    """Per query, stream and minute: count, sum and extremes, exactly."""
    driver = KeptDriver(redis_server, tmp_path)
    world = World(redis_client, driver.cluster)
    world.publish(assigned(range(1, STREAMS + 1)))
    driver.start()
    try:
        with Producer(redis_server, driver.cluster) as producer:
            _live_through_two_kills(world, producer, driver)
        driver.wait_for(world.is_read, "batch with the last record")
    finally:
        driver.end()
    batches = driver.telemetry()
    _check_spans(batches, world)
    world.check_windows(batches)
    moved = [move for batch in batches for move in batch["moves"]]
    assert {move["query"] for move in moved} == {6, 7, SPREAD}
    assert sum(batch["imported_tasks"] for batch in batches) == len(moved)
    assert list(redis_client.scan_iter("*transfer:*")) == []
    _check_whole_time_readers(world)


def _live_through_two_kills(world: World, producer: Producer, driver: KeptDriver) -> None:
    reports = iter(taxi_reports(limit=400_000))
    rng = np.random.default_rng(7)
    text = json.dumps(SPREAD_TEXT.to_json())
    spread = AddQuery(
        SPREAD,
        0,
        0,
        tuple(range(1, STREAMS + 1)),
        text,
        ((0, 0, 3), (1, 3, 6), (2, 6, 8)),
    )
    world.publish([spread, *(_arrival(q, rng) for q in range(1, 31))])
    _feed(world, producer, reports, driver, until_batches=3)
    world.publish(
        [_arrival(31, rng), RemoveQuery(1), RestartQuery(2, 1, 2), *_state_moves(world, 0)]
    )
    _feed(world, producer, reports, driver, until_batches=6)
    world.publish(_state_moves(world, 1))
    world.append(producer, next(reports))
    driver.kill_driver()
    for _ in range(10):  # the log goes on while nobody reads it
        world.append(producer, next(reports))
    world.publish(
        [_arrival(32, rng), RemoveQuery(3), RestartQuery(4, 1, 0), *_state_moves(world, 2)]
    )
    _feed(world, producer, reports, driver, until_batches=10)
    world.publish([RestartQuery(2, 2, 0), _arrival(33, rng), *_state_moves(world, 0)])
    driver.kill()  # the agent; its driver is an orphan now, which the next agent ends
    driver.start()
    _feed(world, producer, reports, driver, until_batches=14)


def _state_moves(world: World, turn: int) -> list[Action]:
    """Move three tasks of the split query and two whole queries by one node, with their state."""
    routes = world.tables[-1].queries
    spread = [
        MoveTasks(SPREAD, (((routes[SPREAD].owners()[task] + 1) % 3, task, task + 1),))
        for task in (turn, turn + 3, 7)
    ]
    whole = [MoveTasks(query, (((routes[query].node + 1) % 3, 0, 1),)) for query in (6, 7)]
    return [*spread, *whole]


def _check_whole_time_readers(world: World) -> None:
    """A query that was there all the time has every record of the busiest tile, by the input alone.

    This holds without a look at the telemetry.
    """
    routes = world.tables[-1].queries
    readers = [one for one in world.asked if 5 <= one.query < 31 and 1 in routes[one.query].streams]
    assert readers, "some query must have read the busiest tile from start to end"
    appended = sum(int((rows.stream == 1).sum()) for rows in world.blocks)
    for one in readers:
        counts = {place: values[0] for place, values in world.measured(one).items()}
        assert sum(n for (_, stream), n in counts.items() if stream == 1) == appended


def _arrival(query: int, rng: np.random.Generator) -> AddQuery:
    streams = rng.choice(STREAMS, size=int(rng.integers(1, 5)), replace=False) + 1
    return AddQuery(
        query, 0, int(rng.integers(0, 3)), tuple(sorted(streams.tolist())), SUMMARY_TEXT
    )


def _feed(
    world: World, producer: Producer, reports: Any, driver: KeptDriver, until_batches: int
) -> None:
    """Append about ten minutes of reports a second until so many batches are done."""

    def fed(batches: list[dict[str, Any]]) -> bool:
        world.append(producer, next(reports))
        return len(batches) >= until_batches

    driver.wait_for(fed, f"{until_batches} batches")


def _check_spans(batches: list[dict[str, Any]], world: World) -> None:
    """The batches cover the log from its start to its end without gap or overlap."""
    assert batches[0]["start"] == START
    for before, after in pairwise(batches):
        assert before["end"] == after["start"]
    assert batches[-1]["end"] == world.last
    assert sum(batch["in"] for batch in batches) == world.count
    assert (
        json.loads(world.client.get(keys.route_latest_key(world.cluster)) or "0")
        == len(world.tables) - 1
    )
