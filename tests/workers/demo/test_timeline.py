from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.wire.records.record_codec import check_block
from workers.demo.program import rows_between
from workers.demo.recording import (
    REPORT,
    SPAN_MS,
    START_MS,
    CarReports,
    RecordedTile,
    Recording,
    Trips,
)
from workers.demo.taxis import reports_between, trips_at

HOUR = 3_600_000


def small() -> Recording:
    """Two tiles, reports at 0, 5, 5 and the last millisecond, trips at the start, midst and end."""
    columns = np.array([[1, 10, 11, -1], [2, 20, 21, 300], [3, 30, 31, 0], [4, 40, 41, 7]]).T
    positions = CarReports(np.array([0, 5, 5, SPAN_MS - 1]), np.array([0, 1, 0, 0]), *columns)
    trips = Trips(
        number=np.array([7, 8, 9]),
        start=np.array([0, 10, SPAN_MS - 10]),
        end=np.array([10, 20, SPAN_MS + 10]),
        tiles=((0,), (0, 1), (1,)),
    )
    return Recording((RecordedTile(52, 65, 3), RecordedTile(50, 66, 1)), positions, trips)


def cars(blocks: dict[int, pa.RecordBatch]) -> dict[int, list[int | None]]:
    return {tile: batch["car"].to_pylist() for tile, batch in blocks.items()}


def names(moment: int) -> list[str]:
    return [query.name for query in trips_at(small(), moment)]


@pytest.mark.parametrize(
    ("after", "until", "expected"),
    [
        (-1, 0, {0: [1]}),
        (0, 4, {}),
        (0, 5, {0: [3], 1: [2]}),
        (-1, 5, {0: [1, 3], 1: [2]}),
        (SPAN_MS - 2, SPAN_MS, {0: [4, 1]}),
        (-1, 2 * SPAN_MS - 1, {0: [1, 3, 4, 1, 3, 4], 1: [2, 2]}),
    ],
)
def test_reports_of_a_tick(after: int, until: int, expected: dict[int, list[int]]) -> None:
    """The first moment is left out, the last is in: ticks that touch repeat and lose nothing."""
    assert cars(reports_between(small(), after, until)) == expected


def test_event_time_grows_over_the_seam() -> None:
    blocks = reports_between(small(), SPAN_MS - 2, SPAN_MS)
    times = blocks[0]["ts"].cast(pa.int64()).to_pylist()
    assert times == [START_MS + SPAN_MS - 1, START_MS + SPAN_MS]


def test_an_unknown_speed_is_null_and_a_known_one_is_not() -> None:
    batch = reports_between(small(), -1, 5)[0]
    assert batch["speed"].to_pylist() == [None, 0]


def test_records_have_the_schema_of_the_wire(recording: Recording) -> None:
    for tile, batch in reports_between(recording, -1, 60_000).items():
        check_block(tile, batch, REPORT)


@given(st.lists(st.integers(0, 2 * SPAN_MS), min_size=1, max_size=12))
@settings(max_examples=15, deadline=None)
def test_every_report_is_given_once_however_time_is_cut(
    recording: Recording, cuts: list[int]
) -> None:
    moments = [-1, *sorted(set(cuts)), 2 * SPAN_MS - 1]
    moments = [m for m in moments if m < 2 * SPAN_MS]
    found = sum(
        batch.num_rows
        for after, until in pairwise(moments)
        if after < until
        for batch in reports_between(recording, after, until).values()
    )
    assert found == 2 * len(recording.positions.at)


def test_loops_are_cut_at_the_end_of_the_day() -> None:
    at = small().positions.at
    rows, times = rows_between(at, SPAN_MS - 3, 2 * SPAN_MS + 4, SPAN_MS, START_MS)
    assert rows.tolist() == [3, 0, 1, 2, 3, 0]
    within = [SPAN_MS - 1, SPAN_MS, SPAN_MS + 5, SPAN_MS + 5, 2 * SPAN_MS - 1, 2 * SPAN_MS]
    assert (times - START_MS).tolist() == within


def test_a_trip_lives_from_its_start_up_to_its_end() -> None:
    assert names(-1) == []
    assert names(0) == ["trip-7-0"]
    assert names(9) == ["trip-7-0"]
    assert names(10) == ["trip-8-0"]
    assert names(20) == []


def test_a_trip_on_its_way_at_the_seam_keeps_its_name() -> None:
    """The trip of the first loop departs in the second, beside one that starts there."""
    assert names(SPAN_MS - 1) == ["trip-9-0"]
    assert names(SPAN_MS) == ["trip-9-0", "trip-7-1"]
    assert names(SPAN_MS + 10) == ["trip-8-1"]


def test_a_trip_reads_the_tiles_it_crosses() -> None:
    assert trips_at(small(), 10)[0].streams == ("tile-52-65", "tile-50-66")


def test_one_trip_in_four_keeps_its_name_while_it_lasts(recording: Recording) -> None:
    moments = range(2 * HOUR, 3 * HOUR, 600_000)
    every = [{trip.name for trip in trips_at(recording, moment)} for moment in moments]
    some = [{trip.name for trip in trips_at(recording, moment, 4)} for moment in moments]
    for trips, chosen in zip(every, some, strict=True):
        assert chosen < trips
        assert len(trips) / 8 < len(chosen) < len(trips) / 2
        # A trip that is chosen once is chosen at every moment.
        assert chosen == trips & set().union(*some)


def test_trips_over_many_tiles_can_be_left_out(recording: Recording) -> None:
    every = trips_at(recording, 2 * HOUR)
    few = [trip for trip in every if len(trip.streams) <= 5]
    assert 0 < len(few) < len(every)
    assert trips_at(recording, 2 * HOUR, most_tiles=5) == few


def test_no_trip_outlasts_the_next_loop(recording: Recording) -> None:
    """Only one loop back is looked at."""
    assert recording.trips.end.max() < 2 * SPAN_MS
    assert (recording.trips.start < recording.trips.end).all()


def test_the_day_is_lively(recording: Recording) -> None:
    """A hundred streams, and a changing crowd of trips, largest on Friday night."""
    assert len(recording.tiles) == 100
    crowd = [len(trips_at(recording, hour * HOUR)) for hour in range(25, 48)]
    assert max(crowd) > 250
    assert min(crowd) > 40


def test_tiles_are_declared_at_the_rate_they_will_have(recording: Recording) -> None:
    first = recording.tiles[0].declaration(60)
    assert first["name"] == "tile-52-65"
    assert first["declared_rate"] == pytest.approx(45_311 / 86_400 * 60, abs=1e-3)
    reports = [tile.reports for tile in recording.tiles]
    assert reports == sorted(reports, reverse=True)
