"""The reports of the taxis between two moments, and the trips in progress at one."""

from typing import Final

import numpy as np
import pyarrow as pa

from workers.demo.long_lived import TEXT
from workers.demo.loops import Ints, rows_between, slices_by
from workers.demo.program import Wanted
from workers.demo.recording import SPAN_MS, START_MS, Recording
from workers.demo.schema import REPORT
from workers.demo.speeds import NO_SPEED

# More tiles than any trip crosses.
ANY: Final = 1 << 30


def reports_between(recording: Recording, after: int, until: int) -> dict[int, pa.RecordBatch]:
    """Return the reports of the moments (after, until] by tile number, in order of time."""
    rows, times = rows_between(recording.positions.at, after, until, SPAN_MS, START_MS)
    order = np.argsort(recording.positions.tile[rows], kind="stable")
    batch = _batch(recording, rows[order], times[order])
    return slices_by(recording.positions.tile[rows[order]], batch)


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
