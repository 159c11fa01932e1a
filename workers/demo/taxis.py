"""The demonstration `sf`: a day of taxis; each map tile is a stream, each trip a query."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from workers.demo.program import Ints, ProgramQuery, rows_between, slices_by
from workers.demo.recording import NO_SPEED, REPORT, SPAN_MS, START_MS, Recording, load_recording

MOST_STREAMS: Final = 4
EXPONENT: Final = 1.0
SEED: Final = 20_080_524
# What every query of the taxis computes: the numbers of one minute by tile.
TEXT: Final = {
    "key": ["stream"],
    "aggregates": {
        "records": "count(*)",
        "mean_speed_cm_s": "mean(speed)",
        "lowest_speed_cm_s": "min(speed)",
        "highest_speed_cm_s": "max(speed)",
    },
    "window_s": 60.0,
}
# One trip in so many is a query, and none over many tiles: a plan must hold for ten minutes, in
# which all trips are replaced, and a node with a trip over many tiles receives all of these.
TRIPS_PER_QUERY: Final = 30
MOST_TILES: Final = 5
# The tasks of the query by car.
CAR_TASKS: Final = 8
# More tiles than any trip crosses.
ANY: Final = 1 << 30


def draw_long_lived(count: int, streams: Sequence[str], seed: int = SEED) -> list[ProgramQuery]:
    """Return `count` queries over 1 to 4 streams each; `streams` from the most popular.

    The first queries stay what they are when more are drawn.
    """
    draw = np.random.default_rng(seed)
    weights = np.arange(1, len(streams) + 1) ** -EXPONENT
    shares = weights / weights.sum()
    most = min(MOST_STREAMS, len(streams))
    return [
        ProgramQuery(query_name(number), _drawn(draw, streams, shares, most), TEXT)
        for number in range(1, count + 1)
    ]


def query_name(number: int) -> str:
    """Return the name of a long-lived query, numbered from 1."""
    return f"mouse-{number:06d}"


def _drawn(
    draw: np.random.Generator, streams: Sequence[str], shares: np.ndarray, most: int
) -> tuple[str, ...]:
    size = int(draw.integers(1, most + 1))
    chosen = draw.choice(len(streams), size=size, replace=False, p=shares)
    return tuple(streams[index] for index in sorted(chosen.tolist()))


class Taxis:
    """The recorded day, replayed `speed` times as fast, with so many long-lived queries."""

    slug = "sf"
    prefixes: Sequence[str] = ("trip-", "mouse-", "by-")
    key = "car"

    def __init__(self, speed: float, long_lived: int, recording: Recording | None = None) -> None:
        """Replay a recording, that of the package by default."""
        self._recording = recording or load_recording()
        self._speed = speed
        names = [tile.name for tile in self._recording.tiles]
        self._long_lived = draw_long_lived(long_lived, names)

    def declarations(self) -> list[dict[str, Any]]:
        """Return one stream per map tile."""
        return [tile.declaration(self._speed) for tile in self._recording.tiles]

    def records_between(self, after: int, until: int) -> dict[str, pa.RecordBatch]:
        """Return the reports of the moments (after, until] by tile."""
        result = reports_between(self._recording, after, until)
        return {self._recording.tiles[tile].name: batch for tile, batch in result.items()}

    def queries_at(self, moment: int) -> Sequence[ProgramQuery]:
        """Return the long-lived queries, and those of the trips that are in progress."""
        trips = trips_at(self._recording, moment, TRIPS_PER_QUERY, MOST_TILES)
        return [*self._long_lived, *trips]

    def queries_by_key(self) -> Sequence[ProgramQuery]:
        """Return a query over all tiles by car, split over tasks: trips are queries by tile."""
        names = tuple(tile.name for tile in self._recording.tiles)
        text = {**TEXT, "key": [self.key]}
        # Merged by another node, so that a plan may spread the records of a hot key.
        return [ProgramQuery("by-car", names, text, tasks=CAR_TASKS, key_grouping="key")]


def reports_between(recording: Recording, after: int, until: int) -> dict[int, pa.RecordBatch]:
    """Return the reports of the moments (after, until] by tile number, in order of time."""
    rows, times = rows_between(recording.positions.at, after, until, SPAN_MS, START_MS)
    order = np.argsort(recording.positions.tile[rows], kind="stable")
    batch = _batch(recording, rows[order], times[order])
    return slices_by(recording.positions.tile[rows[order]], batch)


def trips_at(
    recording: Recording, moment: int, one_in: int = 1, most_tiles: int = ANY
) -> list[ProgramQuery]:
    """Return the trips on the way at a moment: started, and not yet at their end.

    One in `one_in` of the trips, and none that crosses more than `most_tiles` tiles.
    """
    loop, within = divmod(moment, SPAN_MS)
    # A trip may still be on its way when the day begins again; none takes a day.
    loops = [(loop - 1, within + SPAN_MS), (loop, within)]
    return [
        trip
        for number, index in loops
        if number >= 0
        for trip in _on_the_way(recording, number, index, one_in)
        if len(trip.streams) <= most_tiles
    ]


def _on_the_way(recording: Recording, loop: int, within: int, one_in: int) -> list[ProgramQuery]:
    trips = recording.trips
    chosen = trips.number % one_in == 0
    result = np.flatnonzero(chosen & (trips.start <= within) & (within < trips.end))
    return [
        ProgramQuery(
            f"trip-{trips.number[index]}-{loop}",
            tuple(recording.tiles[tile].name for tile in trips.tiles[index]),
            TEXT,
        )
        for index in result.tolist()
    ]


def _batch(recording: Recording, rows: Ints, times: Ints) -> pa.RecordBatch:
    positions = recording.positions
    speed = positions.speed[rows]
    columns = [
        pa.array(times, REPORT.arrow.field("ts").type),
        *(
            pa.array(column[rows], pa.int32())
            for column in (positions.car, positions.x, positions.y)
        ),
        pa.array(speed, pa.int32(), mask=speed == NO_SPEED),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=REPORT.arrow)
