"""Real trips: the numbers that the data's own description states, and small files."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from algorithms.errors import BadProblem
from algorithms.lab.placement.workloads.events import Happening
from algorithms.lab.placement.workloads.trips import (
    RATES_FILE,
    TRIPS_FILE,
    Trips,
    read_trips,
    tile_rates,
)

DATA = Path(__file__).parents[6] / "shared" / "data"


@pytest.fixture(scope="module")
def trips() -> Trips:
    return read_trips(DATA / TRIPS_FILE)


def test_trips_have_the_published_numbers(trips: Trips) -> None:
    """Queries, edges, sources and distinct source sets, as the data's description counts them."""
    graph = trips.subscriptions
    assert (graph.queries, len(graph.indices), graph.sources) == (136_694, 732_019, 1_437)
    assert len(graph.problem(100, 0.05).types) == 36_134
    assert (np.diff(graph.readers) <= 0).all()


def test_at_most_300_trips_are_under_way_at_once(trips: Trips) -> None:
    """Arrivals and departures at their true times; all trips end."""
    events = trips.events()
    assert events.live().max() == 300
    assert events.live()[-1] == 0
    assert (events.kinds == Happening.ARRIVAL).sum() == 136_694
    assert (trips.ends - trips.starts).mean() / 60 == pytest.approx(11.4, abs=0.05)


def test_tiles_have_the_mean_rate_of_their_reports(trips: Trips) -> None:
    """All tiles together carry nearly all of the 5.57 reports per second."""
    rates = tile_rates(DATA / RATES_FILE, trips.tiles)
    assert rates.min() > 0
    assert 5.5 < rates.sum() <= 3_365_830 / (7 * 86_400)
    assert rates.max() * 300 == pytest.approx(167.42, rel=0.02)


def test_a_small_file_is_read_row_by_row(tmp_path: Path) -> None:
    """Three trips of two, one and two sources; times become seconds since the first start."""
    minute = 60_000
    pq.write_table(
        pa.table(
            {
                "query_id": pa.array([0, 0, 1, 2, 2], pa.int32()),
                "start": pa.array([minute * at for at in (5, 5, 6, 6, 6)], pa.timestamp("ms")),
                "end": pa.array([minute * at for at in (7, 7, 9, 8, 8)], pa.timestamp("ms")),
                "source_id": pa.array([1, 0, 0, 2, 0], pa.int16()),
                "tile_x": pa.array([4, 3, 3, 4, 3], pa.int16()),
                "tile_y": pa.array([1, 1, 1, 2, 1], pa.int16()),
            }
        ),
        tmp_path / "trips.parquet",
    )
    read = read_trips(tmp_path / "trips.parquet")
    assert read.subscriptions.indptr.tolist() == [0, 2, 3, 5]
    assert read.subscriptions.indices.tolist() == [1, 0, 0, 2, 0]
    assert read.starts.tolist() == [0.0, 60.0, 60.0]
    assert read.ends.tolist() == [120.0, 240.0, 180.0]
    assert read.tiles.tolist() == [[3, 1], [4, 1], [4, 2]]


def test_rates_are_counts_over_the_span(tmp_path: Path) -> None:
    """Two buckets of five minutes; tiles without reports have rate 0."""
    pq.write_table(
        pa.table(
            {
                "ts": pa.array([0, 0, 300_000], pa.timestamp("ms")),
                "tile_x": pa.array([3, 4, 3], pa.int16()),
                "tile_y": pa.array([1, 1, 1], pa.int16()),
                "n": pa.array([30, 6, 90], pa.int32()),
            }
        ),
        tmp_path / "rates.parquet",
    )
    rates = tile_rates(tmp_path / "rates.parquet", np.array([[3, 1], [4, 1], [4, 2], [9, 9]]))
    assert rates.tolist() == [0.2, 0.01, 0.0, 0.0]


def test_what_is_not_such_a_file_is_refused(tmp_path: Path) -> None:
    """The path and the missing columns are named."""
    with pytest.raises(BadProblem, match="is not a file"):
        read_trips(tmp_path / "nothing.parquet")
    pq.write_table(pa.table({"query_id": [1], "start": [1]}), tmp_path / "other.parquet")
    with pytest.raises(BadProblem, match="no column source_id, end, tile_x, tile_y"):
        read_trips(tmp_path / "other.parquet")
