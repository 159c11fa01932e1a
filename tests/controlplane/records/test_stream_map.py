"""Maps of streams: the newest records by tile; columns of degrees are suggested."""

from typing import Any

import numpy as np
import pytest
from django.conf import settings

from controlplane.access.roles import Actor
from controlplane.catalog.coordinates import Coordinates
from controlplane.catalog.tiles import ACROSS, tiles_of
from controlplane.models import Cluster, Stream
from controlplane.records.stream_map import candidates, stream_map, suggested
from controlplane.topology import streams
from controlplane.topology.coordinates import set_coordinates
from controlplane.topology.streams import StreamSpec
from controlplane.wire.producer import Producer
from controlplane.wire.schema import ColumnSpec, StreamSchema

PLACES = StreamSchema(
    (ColumnSpec("name", "string"), ColumnSpec("a", "float64"), ColumnSpec("b", "float64"))
)


@pytest.fixture
def places(operator: Actor, sf: Cluster) -> Stream:
    """A stream with two columns of numbers."""
    (stream,) = streams.register(operator, sf, [StreamSpec("places", schema=PLACES.to_json())])
    return stream


def append(stream: Stream, rows: list[tuple[float | None, float | None]]) -> None:
    values: list[Any] = [{"name": "n", "a": a, "b": b} for a, b in rows]
    with Producer(settings.REDIS_URL, stream.cluster.slug) as producer:
        producer.append({stream.pk: values}, schemas={stream.pk: PLACES})


def test_the_newest_records_are_counted_by_tile(operator: Actor, places: Stream) -> None:
    assert candidates(places) == ["a", "b"]
    set_coordinates(operator, places, Coordinates("a", "b"))
    places.refresh_from_db()
    assert stream_map(places) is None, "without a record"
    append(places, [(0.0, 0.0)] * 3 + [(10.0, 5.0), (None, 4.0)])
    tiles = stream_map(places)
    assert tiles is not None
    assert (tiles.points, tiles.across) == (4, ACROSS)
    assert {(tile.column, tile.row): tile.value for tile in tiles.tiles} == {
        (0, 0): 3.0,
        (ACROSS - 1, tiles.up - 1): 1.0,
    }
    assert tiles.most == 3.0


def test_degrees_are_suggested_and_other_numbers_are_not(places: Stream) -> None:
    append(places, [(12.5, 100.25), (13.5, 170.5)])
    assert suggested(places) == Coordinates("b", "a"), "b is beyond the poles"
    append(places, [(1200.0, 3.0), (400.0, 7.0)])
    assert suggested(places) is None


def test_a_point_and_an_outlier_have_a_map() -> None:
    place = Coordinates("a", "b")
    one = tiles_of(place, np.array([3.0]), np.array([4.0]), np.array([2.0]))
    assert one is not None
    assert (len(one.tiles), one.most, one.outside) == (1, 2.0, 0)
    x = np.append(np.linspace(0, 1, 1000), 1e9)
    many = tiles_of(place, x, x % 1, np.ones(1001))
    assert many is not None
    assert many.east < 2
    assert many.outside >= 1
    assert tiles_of(place, np.array([np.nan]), np.array([1.0]), np.array([1.0])) is None
