"""Whatever is planned and whoever is killed when: every window is what the input says.

A seeded schedule of plans goes through `topology.apply`, and so from the rows of a database to a
real driver, while real taxi reports flow. The driver is killed
with -9 at random moments and at each phase of a migration, Redis is killed and started again. Then
every window of every query is compared with one pass over the input.

`make nightly P=schedules` runs them.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import redis
from pytest_django import Settings

from controlplane.wire import keys
from controlplane.wire.drop_counts import DropCount
from controlplane.wire.producer import Producer
from controlplane.wire.routing.actions import Action
from controlplane.wire.routing.cluster_actions import SetCapacity, SetSplitCapacity
from controlplane.wire.routing.drop_rules import INPUT
from controlplane.wire.routing.query_actions import MoveTasks
from tests.support.driver import Driver
from tests.support.redis_server import RedisServer
from tests.support.taxi import taxi_reports
from tests.workers.pipeline.schedules.chance import Chance
from tests.workers.pipeline.schedules.managed import ManagedWorld
from tests.workers.pipeline.schedules.queries import asked
from workers.pipeline.checkpoints.files import Checkpoint

SCHEDULES = 20
STREAMS, SLOTS, SPLITS = 8, 4, 3
STEPS = 10
# While a batch is waited for: a minute of reports so often.
_FEED_EVERY_S = 1.0


class Schedule:
    """One run: a Redis, a driver that is started again whenever it ends, and a world."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.server = RedisServer(directory)
        self.server.start()
        self.client = redis.Redis.from_url(self.server.url)
        self.driver = Driver(self.server.url, directory, "sf", nodes=SLOTS, splits=SPLITS)
        self.checkpoint = directory / "checkpoint"
        self.world = ManagedWorld.create(self.client, "sf", SLOTS, SPLITS, asked(STREAMS))
        self.rng = np.random.default_rng(seed)
        self.chance = Chance(self.rng, SLOTS, SPLITS, up=list(range(SLOTS)))
        # Reading them takes longer than the driver would wait.
        _reports()
        self.minutes = _minutes(self.rng)
        self.deaths = 0
        kinds = ["any moment", "state on its way", "state has come", "redis"]
        self.deaths_at = {2 * (at + 1): kind for at, kind in enumerate(kinds)}

    def end(self) -> None:
        self.driver.kill()
        self.client.close()
        self.server.end()

    def run(self) -> None:
        """Live through the schedule, then wait until all is read and nothing waits."""
        queries = asked(STREAMS)
        self.world.publish(self.chance.beginning(queries, STREAMS))
        self.world.publish(self.chance.drop_rules(STREAMS))
        self.driver.start()
        with Producer(self.server.url, "sf") as producer:
            self._until(lambda rows: len(rows) >= 2, producer)
            for step in range(STEPS):
                self._step(step, producer)
        self.world.publish(_unthrottled(self.world))
        self._until(self._is_done)
        self._until(self._has_nothing_to_plan)

    def _step(self, step: int, producer: Producer) -> None:
        self._feed(producer, int(self.rng.integers(1, 6)))
        self.world.publish(self.chance.plan(self.world.table))
        self._feed(producer, 1)
        if step in self.deaths_at:
            self._die(self.deaths_at[step], producer)
        rows = len(self.driver.telemetry())
        self._until(lambda found: len(found) > rows, producer)

    def _feed(self, producer: Producer, minutes: int) -> None:
        for _ in range(minutes):
            self.world.append(producer, next(self.minutes))

    def _die(self, kind: str, producer: Producer) -> None:
        match kind:
            case "any moment":
                self._die_at(self._random_moment(), producer)
            case "state on its way":
                self._die_at(self._state_is_on_its_way, producer)
            case "state has come":
                self._die_at(self._state_has_come(), producer)
            case _:
                self.server.kill()
                self.server.start()

    def _die_at(self, moment: Callable[[], bool], producer: Producer) -> None:
        """Kill the driver with -9 as soon as it is the moment, with a migration under way."""
        route = self.world.table.queries[1].owners()
        to = [node for node in self.chance.up if node != route[0]] or self.chance.up
        self.world.publish([MoveTasks(1, ((to[0], 0, 1),))])
        self._feed(producer, 1)
        self._until(lambda _: moment())
        self.driver.kill()
        self.deaths += 1
        self._feed(producer, 1)

    def _random_moment(self) -> Callable[[], bool]:
        at = time.monotonic() + float(self.rng.uniform(0, 1.5))
        return lambda: time.monotonic() >= at

    def _state_is_on_its_way(self) -> bool:
        return bool(self.client.exists(keys.transfer_batches_key("sf")))

    def _state_has_come(self) -> Callable[[], bool]:
        version = len(self.world.tables)
        return lambda: any(row["imported_tasks"] and row["version"] >= version
                           for row in self.driver.telemetry())  # fmt: skip

    def _is_done(self, rows: list[dict[str, Any]]) -> bool:
        last = rows[-1] if rows else {"read_position": None, "version": None}
        version = len(self.world.tables) - 1
        read = last["read_position"] == self.world.last and last["version"] == version
        moved = sum(len(row["moves"]) for row in rows)
        # State that a node has exported is imported by the next batch, which may be seconds later.
        return read and not last["waiting"] and sum(row["imported_tasks"] for row in rows) == moved

    def _has_nothing_to_plan(self, _: list[dict[str, Any]]) -> bool:
        """Return whether all batches are whole, and the last one leaves nothing to merge."""
        checkpoint = Checkpoint.read(self.checkpoint)
        end = checkpoint.offset
        return checkpoint.pending is None and not end["merge_pending"] and not end["has_backlog"]

    def _until(
        self, done: Callable[[list[dict[str, Any]]], bool], producer: Producer | None = None
    ) -> None:
        """Wait for the telemetry, with the driver started again where it has ended."""

        fed = time.monotonic()

        def alive(rows: list[dict[str, Any]]) -> bool:
            nonlocal fed
            if producer is not None and time.monotonic() - fed > _FEED_EVERY_S:
                fed = time.monotonic()
                self._feed(producer, 1)
            return done(rows)

        self.driver.keep(alive)


def _unthrottled(world: ManagedWorld) -> list[Action]:
    return [
        SetSplitCapacity(world.table.split_capacity, emulated=False),
        *(
            SetCapacity(node, per_s, emulated=False)
            for node, per_s in world.table.capacities.items()
        ),
    ]


@cache
def _reports() -> list[dict[int, pa.RecordBatch]]:
    return taxi_reports(limit=300_000)


def _minutes(rng: np.random.Generator) -> Iterator[dict[int, pa.RecordBatch]]:
    """Yield real reports minute by minute; some come minutes late, some too late."""
    held: list[tuple[int, dict[int, pa.RecordBatch]]] = []
    for minute, batches in enumerate(_reports()):
        mine = {stream: batch for stream, batch in batches.items() if stream <= STREAMS}
        if not mine:
            continue
        if rng.random() < 0.15:
            held.append((minute + int(rng.integers(1, 6)), mine))
            continue
        yield mine
        for due in [one for one in held if one[0] <= minute]:
            held.remove(due)
            yield due[1]


@pytest.mark.nightly("schedules")
@pytest.mark.spark
@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("class_archive", "redis_url")
@pytest.mark.parametrize("seed", range(1, SCHEDULES + 1))
# A schedule has four starts of Spark, beside the starts of other tests.
@pytest.mark.timeout(1_800)
def test_every_window_is_what_the_input_says(seed: int, tmp_path: Path, settings: Settings) -> None:
    schedule = Schedule(tmp_path, seed)
    # Published to the Redis that the schedule kills.
    settings.REDIS_URL = schedule.server.url
    try:
        schedule.run()
        _check(schedule)
    finally:
        schedule.end()


def _check(schedule: Schedule) -> None:
    world, batches = schedule.world, schedule.driver.telemetry()
    rows = world.records(batches)
    assert sum(batch["in"] for batch in batches) == len(rows)
    assert schedule.deaths == sum(kind != "redis" for kind in schedule.deaths_at.values())
    world.check_windows(batches)
    dropped, by_ladder = Counter[str](), Counter[str]()
    for batch in batches:
        dropped.update(batch["dropped"])
        by_ladder.update(batch["ladder_dropped"])
        every = Counter[str](batch["dropped"]) + Counter(batch["ladder_dropped"])
        assert _dropped_by_time(batch) == every
    assert dict(+dropped) == world.dropped_records(rows)
    assert dict(+by_ladder) == world.ladder_dropped_records(rows)
    # Whether a ladder drops depends on the speed of the machine; `test_ladder_kill` has drops.
    world.check_rows()
    assert any(batch["delayed"] for batch in batches), "no split node had a queue"
    moved = [move for batch in batches for move in batch["moves"]]
    assert moved
    assert sum(batch["imported_tasks"] for batch in batches) == len(moved)


def _dropped_by_time(batch: dict[str, Any]) -> Counter[str]:
    """Return the records that each edge dropped as they are counted by event time."""
    result = Counter[str]()
    for count in (DropCount(*row) for row in batch["drop_counts"]):
        edge = str(count.stream) if count.query == INPUT else f"{count.stream}>{count.query}"
        result[edge] += count.dropped
    return +result
