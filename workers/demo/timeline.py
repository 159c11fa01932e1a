"""The day played in a loop without end: what happened between two moments, who is on the way.

A moment is a number of milliseconds since the first loop began; it grows over all loops, and so
does event time, so that no window ever sees time step back.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from workers.demo.long_lived import TEXT
from workers.demo.program import Wanted
from workers.demo.recording import SPAN_MS, START_MS, Ints, Recording
from workers.demo.schema import REPORT
from workers.demo.speeds import NO_SPEED

# More tiles than any trip crosses.
ANY: Final = 1 << 30


def event_ms(moment: int) -> int:
    """Return the event time of a moment, milliseconds since the epoch."""
    return START_MS + moment


def loops_between(after: int, until: int) -> Iterator[tuple[int, int, int]]:
    """Cut (after, until] at the ends of the day: yield loop, after and until within the day."""
    for loop in range((after + 1) // SPAN_MS, until // SPAN_MS + 1):
        begin = loop * SPAN_MS
        yield loop, max(after - begin, -1), min(until - begin, SPAN_MS - 1)


def reports_between(recording: Recording, after: int, until: int) -> dict[int, pa.RecordBatch]:
    """Return the reports of the moments (after, until] by tile number, in order of time."""
    parts = [
        _with_loop(recording, loop, first, last)
        for loop, first, last in loops_between(after, until)
    ]
    rows = np.concatenate([rows for rows, _ in parts]) if parts else np.empty(0, np.int64)
    times = np.concatenate([times for _, times in parts]) if parts else np.empty(0, np.int64)
    order = np.argsort(recording.positions.tile[rows], kind="stable")
    batch = _batch(recording, rows[order], times[order])
    tiles, starts = np.unique(recording.positions.tile[rows[order]], return_index=True)
    ends = [*starts[1:], len(rows)] if len(rows) else []
    return {
        int(tile): batch.slice(int(start), int(end - start))
        for tile, start, end in zip(tiles, starts, ends, strict=True)
    }


def trips_at(
    recording: Recording, moment: int, one_in: int = 1, most_tiles: int = ANY
) -> list[Wanted]:
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


def trip_name(number: int, loop: int) -> str:
    """Return the name of a trip's query."""
    return f"trip-{number}-{loop}"


def _on_the_way(recording: Recording, loop: int, within: int, one_in: int) -> list[Wanted]:
    trips = recording.trips
    chosen = trips.number % one_in == 0
    result = np.flatnonzero(chosen & (trips.start <= within) & (within < trips.end))
    return [
        Wanted(
            trip_name(int(trips.number[index]), loop),
            tuple(recording.tiles[tile].name for tile in trips.tiles[index]),
            TEXT,
        )
        for index in result.tolist()
    ]


def _with_loop(recording: Recording, loop: int, after: int, until: int) -> tuple[Ints, Ints]:
    """Return the rows within one loop and their event times."""
    offset = recording.positions.at
    first, last = np.searchsorted(offset, [after, until], side="right")
    return np.arange(first, last), offset[first:last] + event_ms(loop * SPAN_MS)


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
