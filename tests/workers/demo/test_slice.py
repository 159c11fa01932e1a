"""The stored day against the data it was cut from, computed another way (pandas, row by row)."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from workers.demo.recording import DATA, SPAN_MS, START_MS

SOURCE = Path(__file__).parents[4] / "shared" / "data"
START = pd.Timestamp(START_MS, unit="ms", tz="UTC")
END = START + pd.Timedelta(SPAN_MS, unit="ms")
COLUMNS = ["ts", "car", "tile_x", "tile_y"]
from_source = pytest.mark.nightly("lab")


@pytest.fixture(scope="module")
def events() -> pd.DataFrame:
    return pd.read_parquet(SOURCE / "cab_sf_events.parquet")


@pytest.fixture(scope="module")
def positions() -> pd.DataFrame:
    return pd.read_parquet(DATA / "positions.parquet")


@pytest.fixture(scope="module")
def trips() -> pd.DataFrame:
    return pd.read_parquet(DATA / "trips.parquet")


def tiles_of(reports: pd.DataFrame) -> "pd.Series[str]":
    return (reports.tile_x // 10).astype(str) + "/" + (reports.tile_y // 10).astype(str)


@from_source
def test_positions_are_all_reports_of_the_days_hundred_busiest_tiles(
    events: pd.DataFrame, positions: pd.DataFrame
) -> None:
    """Nothing added, dropped or reordered."""
    day = events[(events.ts >= START) & (events.ts < END)]
    tiles = tiles_of(day)
    busiest = tiles.value_counts().index[:100]
    expected = day[tiles.isin(set(busiest))].reset_index(drop=True)
    pd.testing.assert_frame_equal(positions[COLUMNS], expected[COLUMNS])
    counts = tiles.value_counts()
    assert counts.iloc[99] > counts.iloc[100]


@from_source
def test_speeds_are_those_of_whole_tracks(events: pd.DataFrame, positions: pd.DataFrame) -> None:
    """Of some cars, report by report: the previous one may lie outside the day and its tiles."""
    for car in sorted(positions.car.unique())[::60]:
        stored = positions[positions.car == car]
        expected = _speeds_of_track(events[events.car == car])
        found = dict(zip(stored.ts, stored.speed.fillna(-1).astype(int), strict=True))
        assert found == {ts: expected[ts] for ts in stored.ts}


def _speeds_of_track(track: pd.DataFrame) -> dict[pd.Timestamp, int]:
    speeds, before = {}, None
    for ts, x, y in zip(track.ts, track.tile_x.astype(int), track.tile_y.astype(int), strict=True):
        speeds[ts] = -1
        if before is not None and 0 < (seconds := (ts - before[0]).total_seconds()) <= 300:
            speed = round(100 * 100 * float(np.hypot(x - before[1], y - before[2])) / seconds)
            speeds[ts] = speed if speed <= 6_000 else -1
        before = (ts, x, y)
    return speeds


@from_source
def test_trips_are_those_that_start_in_the_day_cut_to_its_tiles(
    positions: pd.DataFrame, trips: pd.DataFrame
) -> None:
    watched = set(tiles_of(positions))
    source = pd.read_parquet(SOURCE / "cab_sf_trip_queries.parquet")
    day = source[(source.start >= START) & (source.start < END)]
    names = day.tile_x.astype(str) + "/" + day.tile_y.astype(str)
    expected = day[names.isin(watched)].drop(columns="source_id").reset_index(drop=True)
    pd.testing.assert_frame_equal(trips, expected)


def test_the_day_has_no_outage(positions: pd.DataFrame) -> None:
    """Outages of up to 93 minutes would be dead air; the nightly pause is 3.5 minutes."""
    pauses = positions.ts.diff().dropna()
    assert pauses.max() < pd.Timedelta(minutes=4)
    assert (pauses > pd.Timedelta(minutes=1)).sum() == 1


def test_the_slice_stays_small() -> None:
    assert sum(path.stat().st_size for path in DATA.iterdir()) <= 4_000_000
