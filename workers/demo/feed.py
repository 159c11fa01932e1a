"""Feeds records into the log at a multiple of the speed at which they were recorded."""

import logging
import time
from collections.abc import Callable, Mapping
from threading import Event
from typing import Final, cast

import pyarrow as pa
import redis

from controlplane.wire.errors import LogFull, LogUnavailable
from controlplane.wire.keys import cluster_prefix
from controlplane.wire.producer import Producer
from workers.demo.program import Program

logger = logging.getLogger(__name__)

TICK_S: Final = 0.5
# After a pause (a full log, a sleeping laptop) the replay continues from where it was instead of
# rushing through what it missed.
LONGEST_STEP_S: Final = 2.0
_RETRY_S: Final = 2.0


def next_moment(moment: int, elapsed_s: float, speed: float) -> int:
    """Return the moment that is reached `elapsed_s` seconds of wall-clock time later."""
    return moment + round(min(max(elapsed_s, 0.0), LONGEST_STEP_S) * speed * 1000)


class StoredMoment:
    """The moment up to which records are in the log, stored in Redis."""

    def __init__(self, client: "redis.Redis", cluster: str) -> None:
        self._client = client
        self._key = f"{cluster_prefix(cluster)}replay"

    def read(self) -> int:
        """Return the moment, before the first record if none is stored."""
        stored = cast("bytes | None", self._client.get(self._key))
        return -1 if stored is None else int(stored)

    def write(self, moment: int) -> None:
        """Store the moment."""
        self._client.set(self._key, moment)


class Feed:
    """Advances the replay, one atomic append per tick.

    The moment is stored after the append, so that a kill in between repeats one tick of records and
    loses none.
    """

    def __init__(
        self,
        program: Program,
        streams: Mapping[str, int],
        producer: Producer,
        place: StoredMoment,
        speed: float,
    ) -> None:
        """Feed a program's records into its streams, whose ids are given by name."""
        self._program = program
        self._streams = streams
        self._producer = producer
        self._place = place
        self._speed = speed
        self.moment = place.read()

    def advance(self, elapsed_s: float) -> None:
        """Append the records of the elapsed time.

        Raises `LogFull`, `LogUnavailable` or `redis.RedisError`; the moment does not advance then.
        """
        until = next_moment(self.moment, elapsed_s, self._speed)
        self._producer.append(self._blocks(until))
        self.moment = until
        self._place.write(until)

    def run(self, stop: Event, clock: Callable[[], float] = time.monotonic) -> None:
        """Advance every tick until `stop` is set; waits while the log is full or away."""
        last = clock()
        while not stop.wait(TICK_S):
            now = clock()
            try:
                self.advance(now - last)
            except (LogFull, LogUnavailable, redis.RedisError) as error:
                logger.warning("the log takes nothing now: %s", error)
                stop.wait(_RETRY_S)
            last = now

    def _blocks(self, until: int) -> dict[int, pa.RecordBatch]:
        records = self._program.records_between(self.moment, until)
        return {self._streams[name]: batch for name, batch in records.items()}
